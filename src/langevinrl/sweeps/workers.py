"""Processes that train on this machine, one per slot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import Interrupted, free_signals
from langevinrl.storage.files import open_append
from langevinrl.sweeps.slots import Slot

LOG = "log.txt"  # output of a process
PAUSE = 0.5  # seconds between checks


class Worker(NamedTuple):
    """A process and what it works on."""

    process: subprocess.Popen[bytes]
    task: Any


class Workers:
    """Processes in slots; leaving the block ends all of them.

    The first stop signal asks each to save and stop, the second kills it.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self.running: dict[int, Worker] = {}  # by slot
        self.signals: list[int] = []  # received

    def __enter__(self) -> Workers:
        self._old = {name: signal.signal(name, self._on_signal) for name in free_signals()}
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self.running.values():
            worker.process.kill()
            worker.process.wait()
        for name, handler in self._old.items():
            signal.signal(name, handler)

    def _on_signal(self, number: int, _: Any) -> None:
        self.signals.append(number)
        for worker in self.running.values():
            first = len(self.signals) == 1
            worker.process.send_signal(signal.SIGTERM if first else signal.SIGKILL)

    @property
    def has_room(self) -> bool:
        """Whether another process may be started."""
        return not self.signals and len(self.running) < len(self.slots)

    def start(self, task: Any, words: Sequence[str], log: Path) -> None:
        """Run `python -m` with these words in a free slot; its output is appended to a file."""
        free = next(index for index in range(len(self.slots)) if index not in self.running)
        slot = self.slots[free]
        with open_append(log) as file:
            process = subprocess.Popen(
                # -P: the current folder, which may be a received one, is not searched.
                [sys.executable, "-P", "-m", *words, "--cores", ",".join(map(str, slot.cores))],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=slot.environment(os.environ),
                start_new_session=True,  # Ctrl-C reaches it through this process, once
            )
        self.running[free] = Worker(process, task)

    def collect(self) -> list[tuple[Any, int]]:
        """Return the tasks whose process has ended, with its exit code."""
        ended = [slot for slot, one in self.running.items() if one.process.poll() is not None]
        workers = [self.running.pop(slot) for slot in ended]
        return [(worker.task, worker.process.returncode) for worker in workers]

    def raise_if_stopped(self, next_step: str) -> None:
        """Raise if a signal ended the work; `next_step` says how to continue."""
        if self.signals:
            raise Interrupted(f"Stopped; every run is saved.  {next_step}", self.signals[0])
