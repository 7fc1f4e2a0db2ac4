"""langevinrl sweep FILE|DIR [--backend local|ray|slurm]"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from langevinrl.cli.forms import parse
from langevinrl.errors import UserError

if TYPE_CHECKING:
    from langevinrl.sweeps.queue import SweepFolder


@dataclass(frozen=True)
class Backends:
    """Backend and its options."""

    # this machine, one process per core or GPU; a Ray cluster; a SLURM queue
    backend: Literal["local", "ray", "slurm"] = "local"
    workers: int | None = None  # local: jobs at a time; by default one per core or GPU
    address: str | None = None  # ray: the cluster's address; by default a local one is started
    partition: str | None = None  # slurm: partition to queue in
    hours: float = 24.0  # slurm: time limit of one job, which is queued again after it
    gpus: int = 0  # slurm and ray: GPUs for one job
    # seeds of one configuration in one process, or each in its own; auto: the faster one
    seeds_per_process: Literal["auto", "one", "all"] = "auto"
    retries: int = 1  # further tries of a job that failed
    keep_replay: bool = False  # keep the replay of finished runs, to train them further

    def options(self) -> dict[str, Any]:
        """Return the options of the chosen backend."""
        if self.retries < 0 or self.gpus < 0 or (self.workers is not None and self.workers < 1):
            raise UserError("--retries and --gpus count from 0, --workers from 1")
        if not 0 < self.hours < 10_000:
            raise UserError(f"--hours is {self.hours}; expected more than 0, less than 10000")
        own = {
            "local": ["workers"],
            "ray": ["gpus", "address"],
            "slurm": ["gpus", "partition", "hours"],
        }
        names = ["backend", "retries", "keep_replay", *own[self.backend]]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Sweep:
    """Train every run of a grid; the same command continues a sweep that was stopped."""

    what: tyro.conf.Positional[Path]  # a TOML or JSON file, or the folder of a sweep to continue
    backends: Backends
    out: Path | None = None  # folder of the sweep; by default sweeps/NAME of the file
    # import the agents and environments that the file or folder names; needed once
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Sweep, words, "sweep")
    from langevinrl.sweeps.grid import read_grid
    from langevinrl.sweeps.queue import SweepFolder
    from langevinrl.sweeps.start import go_on, sweep

    options = asked.backends.options()
    if asked.what.is_dir():
        folder = go_on(SweepFolder(asked.what), trust=asked.trust, **options)
    else:
        out = asked.out or Path("sweeps") / asked.what.stem
        grid = read_grid(asked.what, trust=asked.trust)
        per_process = asked.backends.seeds_per_process
        folder = sweep(grid, out, seeds_per_process=per_process, **options)
    print(f"{folder.path}\nSee it with: langevinrl report {shlex.quote(str(folder.path))}")
    exit_if_failed(folder)


def exit_if_failed(folder: SweepFolder) -> None:
    """Exit with code 1 if a job has failed."""
    if any(job.errors and not job.done for job in folder.jobs.values()):
        raise SystemExit(1)
