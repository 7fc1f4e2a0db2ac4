"""What asks a run to stop from outside: Ctrl-C, a closed terminal, a cluster whose time is up.

Each is heard from before the environments are built until they are closed.  The first lets the
iteration at hand end and the run save; a second does not wait for that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from langevinrl.errors import free_signals
from langevinrl.runs.callbacks import Callback

if TYPE_CHECKING:
    from langevinrl.runs.loop import Run, StepInfo

AGAIN = 0.1  # seconds until a signal that came at a bad moment is looked at again
_HEARD: list[StopOnSignal] = []  # who listens, the innermost last


class StopOnSignal(Callback):
    """Asks for a stop when a signal has come, so that the run ends saved.

    A second one raises KeyboardInterrupt, as an environment may hang; but never within JAX, which
    may be compiling and does not survive it: there it waits until JAX has returned.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self.old: dict[int, Any] = {}
        self.lock = threading.Lock()  # held while a signal is sent again, and to end that
        self.listening = False

    def listen(self) -> None:
        """From here on; in another thread than the main one signals are left to whoever is."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.listening = True
        for number in free_signals():
            self.old[number] = signal.signal(number, self.receive)

    def leave(self) -> None:
        """What was set before holds again."""
        with self.lock:
            self.listening = False
        for number, handler in self.old.items():
            signal.signal(number, handler)
        self.old = {}

    def receive(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        if not self.received:
            self.received.append(number)
        elif _is_in_jax(frame):
            timer = threading.Timer(AGAIN, self._send_again, [number])
            timer.daemon = True
            timer.start()
        else:
            raise KeyboardInterrupt("Interrupted; what came after the last checkpoint is lost.")

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
    """Within it signals are requests to stop; as a decorator, while a function runs."""
    signals = StopOnSignal()
    _HEARD.append(signals)
    signals.listen()
    try:
        yield signals
    finally:
        signals.leave()
        _HEARD.remove(signals)


def heard() -> StopOnSignal:
    """Who listens at this moment."""
    return _HEARD[-1]


def _is_in_jax(frame: FrameType | None) -> bool:
    """Whether a frame belongs to JAX, or was called by it."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] in ("jax", "jaxlib"):
            return True
        frame = frame.f_back
    return False
