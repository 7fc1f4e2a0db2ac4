"""Places to run a job on this machine: a share of the processors, or a GPU.  Needs no JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from langevinrl.errors import UserError
from langevinrl.replay.memory import free_memory
from langevinrl.runs.config import RunConfig

# A process of its own for each core gets half as much again done as one on two cores: the matrices
# are too small to be shared out.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ONE_XLA_THREAD = "--xla_cpu_multi_thread_eigen=false"
PROCESS = 0.6e9  # bytes of a run's process beside its replay: JAX, its programs, MuJoCo


@dataclass(frozen=True)
class Slot:
    """Where one job runs at a time."""

    cores: tuple[int, ...]
    gpu: str = ""  # as CUDA_VISIBLE_DEVICES names it

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The variables of a process in this slot, read before JAX loads."""
        found = dict(base)
        if self.gpu:
            found["CUDA_VISIBLE_DEVICES"] = self.gpu
        elif len(self.cores) == 1:
            found |= ONE_THREAD
            if "xla_cpu_multi_thread_eigen" not in found.get("XLA_FLAGS", ""):
                found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} {ONE_XLA_THREAD}".strip()
        return found


def find_slots(num_jobs: int, workers: int | None = None) -> list[Slot]:
    """A slot per GPU, or per core; fewer jobs than cores share the cores out among them."""
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
    """Keep this process to some processors, given as 0,1; before JAX loads, which counts them."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


def visible_gpus(devices: Path = Path("/dev")) -> list[str]:
    """GPUs that JAX could use here, as CUDA names them; none without JAX's CUDA plugin."""
    if not any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13)):
        return []
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is not None:
        return [name for name in told.split(",") if name.strip() and name.strip() != "-1"]
    return [path.name.removeprefix("nvidia") for path in sorted(devices.glob("nvidia[0-9]*"))]


def start_process(words: Sequence[str], slot: Slot, log: Path) -> subprocess.Popen[bytes]:
    """`python -m` with these words, in a slot; what it prints goes to the end of a file."""
    cores = ",".join(map(str, slot.cores))
    with log.open("ab") as file:
        return subprocess.Popen(
            # -P: modules are not looked for in the current folder, which a stranger may have sent.
            [sys.executable, "-P", "-m", *words, "--cores", cores],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=slot.environment(os.environ),
            start_new_session=True,  # Ctrl-C reaches it through its sweep, once
        )


def replay_bytes(config: RunConfig, obs_dim: int, act_dim: int) -> int:
    """What a run's replay takes when it is as full as it will get."""
    seen = config.warmup_steps * config.num_envs + (config.iterations or 0) * config.num_envs
    # One more set of actions for an agent that keeps a column of its own.
    row = obs_dim + 2 * act_dim + 3
    return 4 * config.seeds * min(config.capacity, seen) * row


def fit_slots(slots: list[Slot], needs: Sequence[int], asked: bool) -> list[Slot]:
    """Only as many slots as the largest jobs' replays fit in memory side by side.

    Told how many (`asked`), it refuses instead of using fewer.
    """
    available, largest = free_memory(), sorted(needs, reverse=True)
    fitting = 0
    while fitting < len(slots) and sum(largest[: fitting + 1]) + PROCESS * fitting < available:
        fitting += 1
    if fitting == len(slots):
        return slots
    total = sum(largest[: len(slots)]) / 1e9
    told = f"{len(slots)} jobs side by side need {total:.1f} GB of replay; "
    told += f"{available / 1e9:.1f} GB are free"
    if fitting == 0 or asked:
        what = f"--workers {fitting}" if fitting else "a smaller --capacity or fewer seeds"
        raise UserError(f"{told}. Try {what}")
    print(f"{told}: {fitting} at a time.")
    return slots[:fitting]
