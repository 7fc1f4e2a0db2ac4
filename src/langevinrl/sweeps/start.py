"""Start a sweep, or go on with one: what the command line, the studies and Python call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.envs.build import task_sizes
from langevinrl.errors import UserError, unknown
from langevinrl.runs.config import RunConfig
from langevinrl.storage.folder import SWEEP
from langevinrl.storage.trust import made_by_us, remember, require_trusted
from langevinrl.sweeps.grid import Grid, job_id, seeds_together
from langevinrl.sweeps.local import LocalWorkers
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import find_slots, fit_slots, replay_bytes, visible_gpus
from langevinrl.sweeps.table import SweepTable

Backend: TypeAlias = Literal["local", "ray", "slurm"]
PerProcess: TypeAlias = Literal["auto", "one", "all"]
BACKENDS: tuple[Backend, ...] = ("local", "ray", "slurm")
# Below this, compiling takes longer than training: seeds share a process, and so a program.
SHORT = 3_000  # iterations


def sweep(
    runs: Grid | Sequence[RunConfig],
    out: str | Path,
    *,
    backend: Backend = "local",
    workers: int | None = None,
    retries: int = 1,
    keep_replay: bool = False,
    seeds_per_process: PerProcess = "auto",
    name: str = "",
    study: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> SweepFolder:
    """Train every run, each in a folder named by its hash below `out`; go on where it was cut.

    sweep(Grid({"env": "Hopper-v4"}, {"agent": ["sac", "nclql"]}, seeds=[0, 1]), "sweeps/hopper")

    runs: a grid, or run configurations
    workers: jobs at a time; one per core or GPU unless told
    retries: further tries of a job that failed, before it is reported
    keep_replay: keep what is needed to train a finished run further, gigabytes each
    seeds_per_process: all seeds of one configuration in one process, one, or what is faster
    options: of the backend: `address` for ray, `partition` and others for slurm
    """
    configs = runs.configs() if isinstance(runs, Grid) else [run.resolved() for run in runs]
    configs = arrange(configs, seeds_per_process)
    is_new = not (Path(out) / SWEEP).exists()
    folder = SweepFolder.write(Path(out), configs, name, study)
    if is_new:
        remember([made_by_us(folder.path)])
    remember(imported(configs))
    jobs = [folder.job(job_id(config)) for config in configs]
    return go_on(folder, jobs, backend=backend, workers=workers, retries=retries,
                 keep_replay=keep_replay, quiet=quiet, **options)  # fmt: skip


def arrange(configs: Sequence[RunConfig], seeds_per_process: PerProcess) -> list[RunConfig]:
    """Runs as jobs; left to us, seeds go together on a GPU and in short runs."""
    if not configs:
        raise UserError("the sweep has no run")
    short = all((config.iterations or 0) <= SHORT for config in configs)
    together = seeds_per_process == "all" or bool(visible_gpus()) or short
    apart = seeds_per_process == "one" or not together
    return list(configs) if apart else seeds_together(configs)


def go_on(
    folder: SweepFolder,
    jobs: Sequence[Job] | None = None,
    *,
    backend: Backend = "local",
    workers: int | None = None,
    retries: int = 1,
    keep_replay: bool = False,
    quiet: bool = False,
    trust: bool = False,
    **options: Any,
) -> SweepFolder:
    """Work on the jobs of a sweep's folder that are not done yet: all of them, unless told.

    `trust` allows names of someone's own in a folder that was not made here.
    """
    if backend not in BACKENDS:
        raise UserError(unknown("backend", backend, BACKENDS))
    jobs = list(folder.jobs.values()) if jobs is None else jobs
    names = imported([job.config for job in jobs])
    require_trusted(folder.path, names, trust)
    remember(names)
    needs = memory_needs(jobs)  # for all backends, as it also finds a task that is not there
    shared = {"retries": retries, "keep_replay": keep_replay, "quiet": quiet}
    if backend == "ray":
        from langevinrl.sweeps.ray import run_on_ray

        run_on_ray(folder, jobs, needs, **shared, **options)  # type: ignore[arg-type]  # one dict
    elif backend == "slurm":
        from langevinrl.sweeps.slurm import run_on_slurm

        run_on_slurm(folder, jobs, needs, **shared, **options)  # type: ignore[arg-type]
    else:
        run_here(folder, jobs, needs, workers, **shared)  # type: ignore[arg-type]
    return folder


def imported(configs: Sequence[RunConfig]) -> list[str]:
    """What runs would import by name, each name once."""
    return sorted({name for config in configs for name in config.imported()})


def run_here(
    folder: SweepFolder,
    jobs: Sequence[Job],
    needs: Sequence[int],
    workers: int | None,
    *,
    retries: int,
    keep_replay: bool,
    quiet: bool,
) -> None:
    """Do the jobs on this machine."""
    todo = {job: need for job, need in zip(jobs, needs, strict=True) if not job.done}
    if not todo:
        return
    slots = find_slots(len(todo), workers)
    slots = fit_slots(slots, list(todo.values()), asked=workers is not None)
    table = SweepTable(jobs, len(slots), quiet)
    try:
        LocalWorkers(folder, list(todo), slots, retries, keep_replay).run(table)
    finally:
        table.close()


def memory_needs(jobs: Sequence[Job]) -> list[int]:
    """Bytes of each job's replay; building each task once also finds a name that is wrong."""
    tasks = {_task_key(job): job.config for job in jobs}
    sizes = {key: task_sizes(one.env, one.env_kwargs) for key, one in tasks.items()}
    specs = [sizes[_task_key(job)] for job in jobs]
    return [replay_bytes(j.config, s.obs_dim, s.act_dim) for j, s in zip(jobs, specs, strict=True)]


def _task_key(job: Job) -> str:
    """Jobs with the same key build the same environment."""
    return json.dumps([job.config.env, job.config.env_kwargs])
