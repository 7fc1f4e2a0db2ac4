"""What can go wrong with an environment while it is played, and how it is told."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from langevinrl.errors import UserError

# What a run does about a fault: end, or make that environment anew and go on.
OnError: TypeAlias = Literal["stop", "reset"]


class EnvError(UserError):
    """A failure of an environment during a run; another attempt may succeed."""

    exit_code = 1

    def __init__(self, sentence: str, what: str = "") -> None:
        """`what` is the part of the sentence that says what the environment did."""
        super().__init__(sentence)
        self.what = what


class Fault(NamedTuple):
    """What one environment did wrong; it can be sent from process to process."""

    what: str  # the end of a sentence that begins with the environment
    trace: str = ""  # where in its code, if it raised an error


class Remote(Exception):  # noqa: N818  # no error itself: it shows one that another process met
    """The traceback of another process, shown as the cause of an EnvError."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def raised(command: str, error: BaseException) -> Fault:
    """An error in the environment's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = (str(error).strip().splitlines() or [""])[0]
    words = f"{type(error).__name__}: {said}" if said else type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return Fault(f"raised {words} in {command}(){place}", trace)


def late(command: str, seconds: float) -> Fault:
    """No answer in time."""
    return Fault(f"did not come back from {command}() within {seconds:g} s")


def died(command: str, exit_code: int | None) -> Fault:
    """Its process is gone."""
    if exit_code is None:
        how = "it closed its connection"
    elif exit_code >= 0:
        how = f"it exited with {exit_code}"
    else:
        name = signal.Signals(-exit_code).name
        memory = ", as a system does that is out of memory" if name == "SIGKILL" else ""
        how = f"killed by signal {-exit_code} ({name}{memory})"
    return Fault(f"lost its process in {command}(): {how}")
