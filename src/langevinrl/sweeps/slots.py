"""Slots for jobs on this machine: a share of the processors, or a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from langevinrl.errors import UserError
from langevinrl.replay.memory import free_memory
from langevinrl.runs.config import RunConfig

# Two processes with a core each do half as much again as one process with two cores: the matrices
# are too small to be split.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ONE_XLA_THREAD = "--xla_cpu_multi_thread_eigen=false"
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


def stay_on(cores: str) -> None:
    """Restrict this process to processors, given as 0,1, before JAX starts and counts them."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


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
