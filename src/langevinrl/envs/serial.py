"""Environments of this process, one asked after the other; and what any of them can be asked."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.faults import late, raised
from langevinrl.errors import UserError

TICK = 1.0  # seconds between looks at the clock while an environment is stepped


class Outcome(NamedTuple):
    """What one step of one environment came to."""

    obs: np.ndarray  # (O,) to act on next: the first of a new episode where one ended
    last: np.ndarray  # (O,) where the step led
    reward: float
    terminated: bool
    truncated: bool


def perform(env: gym.Env[Any, Any], command: str, value: Any) -> Any:
    """One command: reset (a seed), step (an action), call (a name), or put back (an EnvState)."""
    if command == "step":
        return _step(env, value)
    if command == "reset":
        return _float32(env.reset(seed=value)[0])
    if command == "call":
        found = env.get_wrapper_attr(value)
        return found() if callable(found) else found
    assert command == "restore", command
    env.env_state = value  # type: ignore[attr-defined]  # a SnapshotWrapper
    return None


def _step(env: gym.Env[Any, Any], action: np.ndarray) -> Outcome:
    """Step, and start the next episode at once where one ended."""
    seen, reward, terminated, truncated, _ = env.step(action)
    last = obs = _float32(seen)
    if terminated or truncated:
        obs = _float32(env.reset()[0])
    return Outcome(obs, last, float(reward), bool(terminated), bool(truncated))


def _float32(obs: Any) -> np.ndarray:
    """A copy, as the environment may write into its own; what is too large becomes infinite."""
    if isinstance(obs, np.ndarray) and obs.dtype == np.float32:
        return obs.copy()
    with np.errstate(over="ignore"):
        return np.array(obs, np.float32)


class SerialEnvs:
    """Environments stepped one after the other, each for at most `timeout` seconds.

    A step that takes longer is interrupted where Python runs it.  One that never comes back from
    native code cannot be interrupted within a process: that takes processes of their own.
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
        """Every environment's answer, or those of some; a Fault for one that failed."""
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
            return late(command, self.timeout)
        except Exception as error:
            return raised(command, error)
        return answer

    def call(self, name: str) -> list[Any]:
        """An attribute of each environment; a method is called."""
        return [perform(env, "call", name) for env in self.envs]

    def rebuild(self, lane: int) -> None:
        """Another environment in the place of one that failed, which is not asked to close."""
        self.envs[lane] = self.make()

    def close(self, terminate: bool = False) -> None:
        """Close every one, though another should fail; with `terminate` none is heard that does."""
        if self.closed:
            return
        self.closed = True
        with contextlib.ExitStack() as stack:
            for env in self.envs:
                if terminate:
                    stack.callback(_close_anyway, env)
                else:
                    stack.callback(env.close)


def _close_anyway(env: gym.Env[Any, Any]) -> None:
    """After a failure: what it says now would hide what it said then."""
    with contextlib.suppress(Exception):
        env.close()


class TooLate(BaseException):
    """Raised in an environment's code by the clock; no `except Exception` there holds it back."""


class Alarm:
    """A clock that interrupts the main thread once it has worked at one thing for too long.

    It runs on SIGALRM.  In another thread, or where somebody else uses that signal, it does
    nothing.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began: float | None = None  # when the thing at hand was begun
        self.armed = False

    def __enter__(self) -> Alarm:
        main = threading.current_thread() is threading.main_thread()
        if self.seconds > 0 and main and hasattr(signal, "setitimer"):
            self.armed = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        if self.armed:
            tick = min(TICK, self.seconds / 2)
            signal.signal(signal.SIGALRM, self._look)
            signal.setitimer(signal.ITIMER_REAL, tick, tick)
        return self

    def _look(self, *_: Any) -> None:
        if self.began is not None and time.monotonic() - self.began > self.seconds:
            self.began = None
            raise TooLate

    def __exit__(self, *_: Any) -> None:
        self.began = None
        if self.armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
