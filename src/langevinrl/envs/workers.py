"""Environments in processes of their own: started, left alone by signals, and ended."""

from __future__ import annotations

import ast
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
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector.utils import CloudpickleWrapper

from langevinrl.envs.faults import died, late, raised
from langevinrl.envs.serial import perform
from langevinrl.errors import STOP_SIGNALS, UserError

CLOSE_SECONDS = 5.0  # for an environment to close by itself
BUILD_SECONDS = 300.0  # for one to be built, if that is more than a step may take
ANSWERED, REFUSED = "answered", "refused"


class Workers:
    """One process for each environment; it ends when this object ends it, or with the run.

    Ctrl-C and a cluster's warning reach the whole group of processes.  They are for the loop,
    which saves before it stops and needs its environments for that.  Everything goes through
    pipes: there is no shared memory and no semaphore that a killed run could leave behind.
    """

    def __init__(
        self, make: Callable[[], gym.Env[Any, Any]], count: int, timeout: float = 0.0
    ) -> None:
        """`timeout` is the seconds that an answer may take; 0 is no limit."""
        require_main_guard()
        self.make, self.timeout, self.closed = CloudpickleWrapper(make), timeout, False
        self.processes: list[BaseProcess] = []
        self.pipes: list[Connection] = []
        self.pending = False  # answers are awaited
        # Python ends such processes by SIGTERM when it exits, and waits; these would not heed it.
        self.at_exit = functools.partial(_kill_if_alive, weakref.ref(self))
        atexit.register(self.at_exit)
        # Forked from a clean process: a fork of this one, where JAX has threads, may hang.
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
        # The server that forks them starts with the first and, like them, leaves signals alone.
        with _signals_held():
            process.start()
        theirs.close()
        return process, ours

    def ask(
        self, command: str, values: Sequence[Any], lanes: Sequence[int] | None = None
    ) -> list[Any]:
        """Every environment's answer, or those of some; a Fault for one that failed."""
        chosen = range(len(self.pipes)) if lanes is None else lanes
        self.pending = True
        for lane, value in zip(chosen, values, strict=True):
            with contextlib.suppress(OSError):  # it is gone, and reading will say so
                self.pipes[lane].send((command, value))
        limit = self.timeout
        if limit and command == "call":  # the first, which is answered when it has been built
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
            return died(command, self.processes[lane].exitcode)
        if kind == REFUSED:
            raise UserError(value)
        return value

    def call(self, name: str) -> list[Any]:
        """An attribute of each environment; a method is called."""
        return self.ask("call", [name] * len(self.pipes))

    def rebuild(self, lane: int) -> None:
        """Another process in the place of one whose environment failed."""
        self._kill(lane)
        self.pipes[lane].close()
        self.processes[lane], self.pipes[lane] = self._start(lane)
        self.ask("call", ["task"], [lane])  # until it is built, for which there is more time

    def close(self, terminate: bool = False) -> None:
        """Ask each to close and give it a few seconds; with `terminate`, end all at once."""
        if self.closed:
            return
        self.closed = True
        if not (terminate or self.pending):
            for pipe in self.pipes:
                with contextlib.suppress(OSError):
                    pipe.send(("close", None))
            end = time.monotonic() + CLOSE_SECONDS
            for process in self.processes:
                process.join(max(0.0, end - time.monotonic()))
        self.kill()
        for pipe in self.pipes:
            pipe.close()
        atexit.unregister(self.at_exit)

    def kill(self) -> None:
        """End all processes at once, whatever they do."""
        for lane in range(len(self.processes)):
            self._kill(lane)

    def _kill(self, lane: int) -> None:
        if self.processes[lane].is_alive():
            self.processes[lane].kill()
            self.processes[lane].join()


def _kill_if_alive(reference: weakref.ref[Workers]) -> None:
    workers = reference()
    if workers is not None:
        workers.kill()


def serve(pipe: Connection, make: Callable[[], gym.Env[Any, Any]]) -> None:
    """A worker: builds its environment, does what it is asked, and ends when told or left alone."""
    leave_signals_to_the_loop()
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    try:
        env = make()
    except Exception as error:
        _send_error(pipe, "make", error)
        return
    with contextlib.suppress(EOFError, OSError):  # the run is gone
        while True:
            command, value = pipe.recv()
            if command == "close":
                break
            try:
                pipe.send((ANSWERED, perform(env, command, value)))
            except Exception as error:
                _send_error(pipe, command, error)
    env.close()


def _send_error(pipe: Connection, command: str, error: Exception) -> None:
    if isinstance(error, UserError):
        pipe.send((REFUSED, str(error)))
    else:
        pipe.send((ANSWERED, raised(command, error)))


def _end_with_the_run() -> None:
    """Nobody may ever ask a step that hangs for its result again; then this process ends, too."""
    run = multiprocessing.parent_process()
    if run is not None:
        wait([run.sentinel])
        time.sleep(CLOSE_SECONDS)  # for an environment that closes
        os._exit(1)


def leave_signals_to_the_loop() -> None:
    """Called in a worker: what asks a run to stop does not stop its environments.

    By a function that does nothing, as programs that an environment starts would inherit SIG_IGN.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """What is started within it does not hear what asks a run to stop; this process does, after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def require_main_guard() -> None:
    """Refuses to start processes from the open code of a script.

    Each process imports the script to find what it defines.  Code that is not under
    `if __name__ == "__main__":` would run again there, and start processes in its turn.
    """
    main = sys.modules["__main__"]
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if path is None or (spec is not None and spec.name.endswith("__main__")):
        return  # a notebook, or a package run by `python -m`: neither is imported again
    line = _running_line(main.__dict__)
    if line is not None and not _is_guarded(Path(path), line):
        raise UserError(
            f"{Path(path).name}, line {line}: asynchronous environments run in processes that "
            "import this script, so what starts them belongs under "
            'if __name__ == "__main__":'
        )


def _running_line(namespace: dict[str, Any]) -> int | None:
    """The line of the main script that is being run; None in a thread of its own."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is namespace:
            return int(frame.f_lineno)
        frame = frame.f_back
    return None


def _is_guarded(path: Path, line: int) -> bool:
    """Whether a line of a script stands under a condition on `__name__`."""
    try:
        tree = ast.parse(path.read_text())
    except (OSError, ValueError, SyntaxError):
        return True  # not a script that can be read: leave it to Python
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or 0):
            names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
            if "__name__" in names:
                return True
    return False
