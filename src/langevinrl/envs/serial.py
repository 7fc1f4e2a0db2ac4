"""Environments stepped one after the other in this process, and the commands they perform."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.faults import late, raised
from langevinrl.errors import UserError

CLOSE_SECONDS = 5.0  # time for an environment to close
TICK = 1.0  # seconds between checks of the time limit


class Outcome(NamedTuple):
    """The result of one step of one environment."""

    obs: np.ndarray  # (O,) to act on next: the first of a new episode if one ended
    last: np.ndarray  # (O,) that the step returned
    reward: float
    terminated: bool
    truncated: bool


def perform(env: gym.Env[Any, Any], command: str, value: Any) -> Any:
    """Run a command: reset (a seed), step (an action), call (a name), restore (a state), close."""
    if command == "step":
        return _step(env, value)
    if command == "reset":
        return _float32(env.reset(seed=value)[0])
    if command == "call":
        found = env.get_wrapper_attr(value)
        return found() if callable(found) else found
    if command == "restore":
        env.env_state = value  # type: ignore[attr-defined]  # a SnapshotWrapper
        return None
    assert command == "close", command
    return env.close()


def method_name(command: str, value: Any) -> str:
    """Return the method of the environment that a command runs, for error messages."""
    return str(value) if command == "call" else command


def _step(env: gym.Env[Any, Any], action: np.ndarray) -> Outcome:
    """Step, and reset if the episode ended."""
    seen, reward, terminated, truncated, _ = env.step(action)
    last = obs = _float32(seen)
    if terminated or truncated:
        obs = _float32(env.reset()[0])
    return Outcome(obs, last, float(reward), bool(terminated), bool(truncated))


def _float32(obs: Any) -> np.ndarray:
    """Return a copy, since the environment may reuse its array; too large numbers become inf."""
    if isinstance(obs, np.ndarray) and obs.dtype == np.float32:
        return obs.copy()
    with np.errstate(over="ignore"):
        return np.array(obs, np.float32)


class SerialEnvs:
    """Environments stepped one after the other, each for at most `timeout` seconds.

    A longer step is interrupted if it runs Python code.  A step that hangs in native code cannot be
    interrupted; only `Workers` can end it.
    """

    def __init__(
        self, make: Callable[[], gym.Env[Any, Any]], count: int, timeout: float = 0.0
    ) -> None:
        """`timeout` 0 is no limit."""
        self.make, self.timeout, self.closed = make, timeout, False
        self.envs: list[gym.Env[Any, Any]] = []
        try:
            for _ in range(count):
                self.envs.append(make())
        except BaseException:
            self.close()
            raise

    def ask(
        self, command: str, values: Sequence[Any], lanes: Sequence[int] | None = None
    ) -> list[Any]:
        """Return the answers of all environments, or of `lanes`; a failure returns a Fault."""
        chosen = range(len(self.envs)) if lanes is None else lanes
        with Alarm(self.timeout) as alarm:
            return [
                self._ask(alarm, self.envs[lane], command, value)
                for lane, value in zip(chosen, values, strict=True)
            ]

    def _ask(self, alarm: Alarm, env: gym.Env[Any, Any], command: str, value: Any) -> Any:
        try:
            alarm.began = time.monotonic()
            answer = perform(env, command, value)
            alarm.began = None
        except UserError:
            raise
        except TooLate:
            return late(method_name(command, value), self.timeout)
        except (Exception, SystemExit) as error:  # a library may call sys.exit
            return raised(method_name(command, value), error)
        return answer

    def rebuild(self, lane: int) -> None:
        """Replace a failed environment by a new one, without closing it."""
        self.envs[lane] = self.make()

    def close(self, terminate: bool = False) -> list[Any]:
        """Close the environments within `CLOSE_SECONDS`; return their answers.

        If one takes longer, those after it are not closed.
        """
        if self.closed:
            return []
        self.closed, self.timeout = True, CLOSE_SECONDS
        answers: list[Any] = []
        end = time.monotonic() + CLOSE_SECONDS
        while len(answers) < len(self.envs) and time.monotonic() < end:
            answers += self.ask("close", [None], [len(answers)])
        return answers


class TooLate(BaseException):
    """Raised in an environment's code after its time limit; not caught by `except Exception`."""


class Alarm:
    """A timer that interrupts the main thread after `seconds` in one command.

    It uses SIGALRM.  In other threads, or if the signal has another handler, it does nothing.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began: float | None = None  # start of the current command
        self.armed = False

    def __enter__(self) -> Alarm:
        main = threading.current_thread() is threading.main_thread()
        if self.seconds > 0 and main and hasattr(signal, "setitimer"):
            self.armed = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        if self.armed:
            tick = min(TICK, self.seconds / 2)
            signal.signal(signal.SIGALRM, self._check_time)
            signal.setitimer(signal.ITIMER_REAL, tick, tick)
        return self

    def _check_time(self, *_: Any) -> None:
        if self.began is not None and time.monotonic() - self.began > self.seconds:
            self.began = None
            raise TooLate

    def __exit__(self, *_: Any) -> None:
        self.began = None
        if self.armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
