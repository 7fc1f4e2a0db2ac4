"""Worker processes, one for each environment."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import gymnasium as gym
from gymnasium.vector.utils import CloudpickleWrapper

from langevinrl.envs.faults import died, late, raised
from langevinrl.envs.serial import CLOSE_SECONDS, method_name, perform
from langevinrl.errors import STOP_SIGNALS, UserError

BUILD_SECONDS = 300.0  # time to build one, if the limit of a step is shorter
ANSWERED, REFUSED = "answered", "refused"


class Workers:
    """One process for each environment; all end with the run.

    Stop signals may reach all processes of a job.  Workers ignore them: the training loop saves
    before it stops, and needs its environments for that.  Data goes through pipes, so that a killed
    run leaves neither shared memory nor semaphores behind.
    """

    def __init__(
        self, make: Callable[[], gym.Env[Any, Any]], count: int, timeout: float = 0.0
    ) -> None:
        """`timeout` limits the seconds of an answer; 0 is no limit."""
        self.make, self.timeout, self.closed = CloudpickleWrapper(make), timeout, False
        self.processes: list[BaseProcess] = []
        self.pipes: list[Connection] = []
        self.pending = False  # waiting for answers
        # At exit Python sends SIGTERM to its children and waits, and workers ignore SIGTERM.
        self.at_exit = functools.partial(_kill_if_alive, weakref.ref(self))
        atexit.register(self.at_exit)
        # A fork of this process may hang, since JAX has threads.
        multiprocessing.set_forkserver_preload(["langevinrl.envs.vector"])
        try:
            for lane in range(count):
                process, pipe = self._start(lane)
                self.processes.append(process)
                self.pipes.append(pipe)
        except BaseException:
            self.close(terminate=True)
            raise

    def _start(self, lane: int) -> tuple[BaseProcess, Connection]:
        context = multiprocessing.get_context("forkserver")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, self.make), name=f"environment-{lane}", daemon=True
        )
        # The fork server starts with the first worker and inherits the blocked signals.
        with _signals_blocked():
            process.start()
        theirs.close()
        return process, ours

    def ask(
        self, command: str, values: Sequence[Any], lanes: Sequence[int] | None = None
    ) -> list[Any]:
        """Return the answers of all environments, or of `lanes`; a failure returns a Fault."""
        chosen = range(len(self.pipes)) if lanes is None else lanes
        self.pending = True
        for lane, value in zip(chosen, values, strict=True):
            with contextlib.suppress(OSError):  # a dead process is reported by the read below
                self.pipes[lane].send((command, value))
        limit = self.timeout
        if limit and command == "call":  # the first call waits until the environment is built
            limit = max(limit, BUILD_SECONDS)
        end = time.monotonic() + limit if limit else None
        answers = [self._answer(lane, command, limit, end) for lane in chosen]
        self.pending = False
        return answers

    def _answer(self, lane: int, command: str, limit: float, end: float | None) -> Any:
        pipe = self.pipes[lane]
        try:
            if end is not None and not pipe.poll(max(0.0, end - time.monotonic())):
                self._kill(lane)
                return late(command, limit)
            kind, value = pipe.recv()
        except (EOFError, OSError):
            self.processes[lane].join(1.0)
            if command == "close":
                return None  # nothing is left to close
            return died(command, self.processes[lane].exitcode)
        if kind == REFUSED:
            raise UserError(value)
        return value

    def rebuild(self, lane: int) -> None:
        """Replace the process of a failed environment by a new one."""
        self._kill(lane)
        self.pipes[lane].close()
        self.processes[lane], self.pipes[lane] = self._start(lane)
        self.ask("call", ["task"], [lane])  # waits for the build, which has a longer limit

    def close(self, terminate: bool = False) -> list[Any]:
        """Close each environment within `CLOSE_SECONDS`; return the answers of all.

        `terminate` kills all processes at once.
        """
        if self.closed:
            return []
        self.closed, self.timeout = True, CLOSE_SECONDS
        answers = []
        if not (terminate or self.pending):
            end = time.monotonic() + CLOSE_SECONDS
            answers = self.ask("close", [None] * len(self.pipes))
            for process in self.processes:
                process.join(max(0.0, end - time.monotonic()))
        self.kill()
        for pipe in self.pipes:
            pipe.close()
        atexit.unregister(self.at_exit)
        return answers

    def kill(self) -> None:
        """Kill all processes and those that their environments started."""
        for lane in range(len(self.processes)):
            self._kill(lane)

    def _kill(self, lane: int) -> None:
        process = self.processes[lane]
        if process.is_alive():
            process.kill()
            process.join()
        _kill_group(process.pid or 0)


def _kill_if_alive(reference: weakref.ref[Workers]) -> None:
    workers = reference()
    if workers is not None:
        workers.kill()


def _kill_group(pid: int) -> None:
    """Kill the process group of a worker: what its environment started would outlive the run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid > 1:
            os.killpg(pid, signal.SIGKILL)


def serve(pipe: Connection, make: Callable[[], gym.Env[Any, Any]]) -> None:
    """Run a worker: build the environment and answer commands until the run ends."""
    ignore_stop_signals()
    os.setpgid(0, 0)  # a group of its own, which can be killed as a whole
    threading.Thread(target=_exit_with_the_run, daemon=True).start()
    try:
        env = make()
    except (Exception, SystemExit) as error:
        _send_error(pipe, "make", error)
        return
    try:
        _answer_commands(pipe, env)
    except (EOFError, ConnectionError):  # the run is gone
        with contextlib.suppress(Exception, SystemExit):
            env.close()
        _kill_group(os.getpid())
    except OSError:  # the environment closed the pipe's descriptor
        sys.exit(1)


def _answer_commands(pipe: Connection, env: gym.Env[Any, Any]) -> None:
    command = ""
    while command != "close":
        command, value = pipe.recv()
        try:
            pipe.send((ANSWERED, perform(env, command, value)))
        except (Exception, SystemExit) as error:
            _send_error(pipe, method_name(command, value), error)


def _send_error(pipe: Connection, command: str, error: BaseException) -> None:
    if isinstance(error, UserError):
        pipe.send((REFUSED, str(error)))
    else:
        pipe.send((ANSWERED, raised(command, error)))


def _exit_with_the_run() -> None:
    """Exit after the run has ended, even if a step hangs."""
    run = multiprocessing.parent_process()
    if run is not None:
        wait([run.sentinel])
        time.sleep(CLOSE_SECONDS)  # time for the environment to close
        _kill_group(os.getpid())


def ignore_stop_signals() -> None:
    """Ignore stop signals in a worker.

    With an empty handler: programs that an environment starts would inherit SIG_IGN.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block stop signals, so that a process started here inherits the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
