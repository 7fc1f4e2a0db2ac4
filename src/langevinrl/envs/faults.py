"""Faults of environments during a run, and the error that reports them."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from langevinrl.envs.factory import one_line
from langevinrl.errors import UserError

# What a run does about a fault: end, or rebuild the environment and go on.
OnError: TypeAlias = Literal["stop", "reset"]


class EnvError(UserError):
    """A failure of an environment during a run; another attempt may succeed."""

    exit_code = 1

    def __init__(self, sentence: str, what: str = "") -> None:
        """`what` is the part of the sentence that says what the environment did."""
        super().__init__(sentence)
        self.what = what


class Fault(NamedTuple):
    """A fault of one environment, in a form that can be sent between processes."""

    what: str  # the predicate of a sentence about the environment
    trace: str = ""  # its traceback, if it raised an error


class Remote(Exception):  # noqa: N818  # it only displays an error of another process
    """The traceback of another process, shown as the cause of an EnvError."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def raised(command: str, error: BaseException) -> Fault:
    """Return the fault of an error raised in the environment's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    trace = "".join(traceback.format_exception(error))
    return Fault(f"raised {one_line(error)} in {command}(){place}", trace)


def late(command: str, seconds: float) -> Fault:
    """Return the fault of a call that exceeded its time limit."""
    return Fault(f"did not come back from {command}() within {seconds:g} s")


def died(command: str, exit_code: int | None) -> Fault:
    """Return the fault of a process that ended."""
    if exit_code is None:
        how = "it closed its connection"
    elif exit_code >= 0:
        how = f"it exited with {exit_code}"
    else:
        name = signal.Signals(-exit_code).name
        memory = ", as a system does that is out of memory" if name == "SIGKILL" else ""
        how = f"killed by signal {-exit_code} ({name}{memory})"
    if command != "call":
        return Fault(f"lost its process in {command}(): {how}")
    # Python prints why on stderr: most often a script without a main guard.
    return Fault(
        f"lost its process while it was built: {how}. Each process imports the script that starts "
        'it, so training belongs under `if __name__ == "__main__":` there'
    )
