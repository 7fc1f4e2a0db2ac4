"""Environments in processes of their own: started, left alone by signals, and ended."""

from __future__ import annotations

import ast
import atexit
import multiprocessing
import signal
import sys
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from langevinrl.errors import UserError


class Workers(AsyncVectorEnv):
    """One process for each environment; it ends when this object ends it, not by a signal.

    Ctrl-C and a cluster's warning reach the whole group of processes.  They are for the loop,
    which saves before it stops and needs its environments for that.
    """

    def __init__(self, makers: Sequence[Callable[[], gym.Env[Any, Any]]]) -> None:
        require_main_guard()
        # Python ends such processes by SIGTERM when it exits, and waits; these would not heed it.
        atexit.register(_kill_if_alive, weakref.ref(self))
        # Forked from a clean process: a fork of this one, where JAX has threads, may hang.
        multiprocessing.set_forkserver_preload(["langevinrl.envs.vector"])
        mode = AutoresetMode.SAME_STEP
        super().__init__(makers, context="forkserver", autoreset_mode=mode)

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Ask each to close; where one is gone or in the middle of something, end all."""
        if not terminate:
            try:
                super().close_extras(timeout)
                return
            except (EOFError, OSError, multiprocessing.TimeoutError):
                pass  # one of them has died
        self.kill()
        for pipe in self.parent_pipes:
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """End all processes at once, whatever they do."""
        for process in getattr(self, "processes", []):
            if process.is_alive():
                process.kill()
                process.join()


def _kill_if_alive(reference: weakref.ref[Workers]) -> None:
    workers = reference()
    if workers is not None:
        workers.kill()


def leave_signals_to_the_loop() -> None:
    """Called in a worker: what asks a run to stop does not stop its environments."""
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):  # Windows has not all
            signal.signal(getattr(signal, name), signal.SIG_IGN)


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
