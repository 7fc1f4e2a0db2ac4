"""Slots for jobs on this machine, a share of the processors or a GPU, and processes in them."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langevinrl.errors import Interrupted, UserError, free_signals
from langevinrl.replay.memory import free_memory
from langevinrl.runs.config import RunConfig
from langevinrl.storage.files import open_append
from langevinrl.storage.trust import search_here

# Two processes with a core each do half as much again as one process with two cores: the matrices
# are too small to be split.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ONE_XLA_THREAD = "--xla_cpu_multi_thread_eigen=false"
LOG = "log.txt"  # output of a process
PAUSE = 0.5  # seconds between checks of processes
PROCESS = 0.6e9  # bytes of a run's process without its replay: JAX, its programs, MuJoCo


@dataclass(frozen=True)
class Slot:
    """Cores, and perhaps a GPU, for one job at a time."""

    cores: tuple[int, ...]
    gpu: str = ""  # its name in CUDA_VISIBLE_DEVICES

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of a process in this slot."""
        found = dict(base)
        if self.gpu:
            found["CUDA_VISIBLE_DEVICES"] = self.gpu
        elif len(self.cores) == 1:
            found |= ONE_THREAD
            if "xla_cpu_multi_thread_eigen" not in found.get("XLA_FLAGS", ""):
                found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} {ONE_XLA_THREAD}".strip()
        return found


def find_slots(num_jobs: int, workers: int | None = None) -> list[Slot]:
    """Return a slot per GPU, or per core; if there are fewer jobs, each gets several cores."""
    cores = usable_cores()
    gpus = visible_gpus()
    wanted = workers or len(gpus) or len(cores)
    wanted = max(1, min(wanted, num_jobs))
    if gpus:
        return [Slot(tuple(cores), gpus[i % len(gpus)]) for i in range(wanted)]
    if wanted >= len(cores):
        return [Slot((cores[i % len(cores)],)) for i in range(wanted)]
    return [Slot(tuple(cores[i::wanted])) for i in range(wanted)]


def usable_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def enter_slot(parser: argparse.ArgumentParser, words: list[str] | None) -> argparse.Namespace:
    """Parse the words of a process in a slot; stay on its cores, before JAX counts them."""
    parser.add_argument("--cores", default="", help="processors to use, as 0,1")
    parser.add_argument("--trust", action="store_true", help="import what the folder names")
    asked = parser.parse_args(words)
    if asked.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in asked.cores.split(",")})
    if asked.trust:
        search_here()
    return asked


def visible_gpus(devices: Path = Path("/dev")) -> list[str]:
    """Return the GPUs that JAX can use, by their CUDA names; none without its CUDA plugin."""
    if not any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13)):
        return []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name for name in chosen.split(",") if name.strip() and name.strip() != "-1"]
    return [path.name.removeprefix("nvidia") for path in sorted(devices.glob("nvidia[0-9]*"))]


def replay_bytes(config: RunConfig, obs_dim: int, act_dim: int) -> int:
    """Return the bytes of a run's replay at the end of the run."""
    seen = config.warmup_steps * config.num_envs + (config.iterations or 0) * config.num_envs
    # A second column of actions, which some agents add.
    row = obs_dim + 2 * act_dim + 3
    return 4 * config.seeds * min(config.capacity, seen) * row


def fit_slots(slots: list[Slot], needs: Sequence[int], asked: bool) -> list[Slot]:
    """Return as many slots as the largest replays fit in memory together.

    asked: the user chose the number of slots: raise instead of using fewer
    """
    available, largest = free_memory(), sorted(needs, reverse=True)
    fitting = 0
    while fitting < len(slots) and sum(largest[: fitting + 1]) + PROCESS * fitting < available:
        fitting += 1
    if fitting == len(slots):
        return slots
    total = sum(largest[: len(slots)]) / 1e9
    problem = f"{len(slots)} jobs side by side need {total:.1f} GB of replay; "
    problem += f"{available / 1e9:.1f} GB are free"
    if fitting == 0 or asked:
        what = f"--workers {fitting}" if fitting else "a smaller --capacity or fewer seeds"
        raise UserError(f"{problem}. Try {what}")
    print(f"{problem}: {fitting} at a time.")
    return slots[:fitting]


class Workers:
    """Processes in slots; leaving the block ends all of them.

    The first stop signal asks each to save and stop, the second kills it.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self.running: dict[int, tuple[subprocess.Popen[bytes], Any]] = {}  # with its task, by slot
        self.signals: list[int] = []  # received

    def __enter__(self) -> Workers:
        self._old = {name: signal.signal(name, self._on_signal) for name in free_signals()}
        return self

    def __exit__(self, *_: Any) -> None:
        for process, _task in self.running.values():
            process.kill()
            process.wait()
        for name, handler in self._old.items():
            signal.signal(name, handler)

    def _on_signal(self, number: int, _: Any) -> None:
        self.signals.append(number)
        for process, _task in self.running.values():
            process.send_signal(signal.SIGTERM if len(self.signals) == 1 else signal.SIGKILL)

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
        self.running[free] = process, task

    def collect(self) -> list[tuple[Any, int]]:
        """Return the tasks whose process has ended, with its exit code."""
        free = [slot for slot, (process, _) in self.running.items() if process.poll() is not None]
        ended = [self.running.pop(slot) for slot in free]
        return [(task, process.returncode) for process, task in ended]

    def raise_if_stopped(self, next_step: str) -> None:
        """Raise if a signal ended the work; `next_step` says how to continue."""
        if self.signals:
            raise Interrupted(f"Stopped; every run is saved.  {next_step}", self.signals[0])


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Name the extra to install if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{error}: pip install 'langevinrl[{name}]'") from error
