"""Signals that stop a run: Ctrl-C, a closed terminal, the end of a cluster's time limit.

They are handled from before the environments are built until they are closed.  The first lets the
current iteration finish and the run save; a second stops at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from langevinrl.errors import Interrupted, free_signals
from langevinrl.runs.callbacks import Callback

if TYPE_CHECKING:
    from langevinrl.runs.loop import Run, StepInfo

RETRY_SECONDS = 0.1  # until a signal that arrived inside JAX is sent again
_HANDLERS: list[StopOnSignal] = []  # in use, the innermost last


class StopOnSignal(Callback):
    """Asks the run to stop after a signal, so that it ends with a checkpoint.

    A second signal raises KeyboardInterrupt, because an environment may hang.  It never does so
    inside JAX, which does not survive an exception while it compiles: it waits until JAX returns.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self.lock = threading.Lock()  # held while a signal is sent again, and to end that
        self.listening = True

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.received:
            self.received.append(number)
        elif _is_in_jax(frame):
            timer = threading.Timer(RETRY_SECONDS, self._send_again, [number])
            timer.daemon = True
            timer.start()
        else:
            raise Interrupted("Interrupted; what came after the last checkpoint is lost.", number)

    def _send_again(self, number: int) -> None:
        with self.lock:
            if self.listening:
                signal.pthread_kill(threading.main_thread().ident or 0, number)

    def on_start(self, run: Run) -> bool:
        return bool(self.received)

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return bool(self.received)


@contextmanager
def listening() -> Iterator[StopOnSignal]:
    """Treat signals as requests to stop; as a decorator, while a function runs."""
    signals = StopOnSignal()
    _HANDLERS.append(signals)
    # Python allows handlers in the main thread only.
    numbers = free_signals() if threading.current_thread() is threading.main_thread() else []
    old = {number: signal.signal(number, signals.receive) for number in numbers}
    try:
        yield signals
    finally:
        with signals.lock:
            signals.listening = False
        for number, handler in old.items():
            signal.signal(number, handler)
        _HANDLERS.remove(signals)


def current_signals() -> StopOnSignal:
    """Return the innermost handler in use."""
    return _HANDLERS[-1]


def _is_in_jax(frame: FrameType | None) -> bool:
    """Return whether a frame belongs to JAX or was called by it."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] in ("jax", "jaxlib"):
            return True
        frame = frame.f_back
    return False
