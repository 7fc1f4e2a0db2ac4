"""Start or continue a sweep: called by the command line, the studies and from Python."""

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
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import replay_bytes, visible_gpus

Backend: TypeAlias = Literal["local", "ray", "slurm"]
PerProcess: TypeAlias = Literal["auto", "one", "all"]
BACKENDS: tuple[Backend, ...] = ("local", "ray", "slurm")
# Below this, compiling takes longer than training: seeds share a process, and so a program.
SHORT = 3_000  # iterations


def sweep(
    runs: Grid | Sequence[RunConfig],
    out: str | Path,
    *,
    seeds_per_process: PerProcess = "auto",
    name: str = "",
    study: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> SweepFolder:
    """Train every run, each in a folder below `out`; continue a sweep that is there.

    sweep(Grid({"env": "Hopper-v4"}, {"agent": ["sac", "nclql"]}, seeds=[0, 1]), "sweeps/hopper")

    runs: a grid, or run configurations
    seeds_per_process: all seeds of a configuration in one process, one, or the faster of these
    options: of `go_on`
    """
    configs = runs.configs() if isinstance(runs, Grid) else [run.resolved() for run in runs]
    configs = arrange(configs, seeds_per_process)
    is_new = not (Path(out) / SWEEP).exists()
    folder = SweepFolder.write(Path(out), configs, name, study)
    if is_new:
        remember([made_by_us(folder.path)])
    remember(imported(configs))
    jobs = [folder.job(job_id(config)) for config in configs]
    return go_on(folder, jobs, quiet=quiet, **options)


def arrange(configs: Sequence[RunConfig], seeds_per_process: PerProcess) -> list[RunConfig]:
    """Return runs as jobs; with "auto", seeds share a process on a GPU and in short runs."""
    if not configs:
        raise UserError("the sweep has no run")
    short = all((config.iterations or 0) <= SHORT for config in configs)
    together = seeds_per_process == "all" or bool(visible_gpus()) or short
    apart = seeds_per_process == "one" or not together
    return list(configs) if apart else seeds_together(configs)


def describe_runs(configs: Sequence[RunConfig]) -> str:
    """Return the number and length of runs, such as: 6 runs of 200 or 1,000 iterations."""
    total = sum(config.seeds for config in configs)
    lengths = sorted({config.iterations or 0 for config in configs})
    return f"{total} run{'s' * (total > 1)} of {' or '.join(f'{n:,}' for n in lengths)} iterations"


def go_on(
    folder: SweepFolder,
    jobs: Sequence[Job] | None = None,
    *,
    backend: Backend = "local",
    retries: int = 1,
    keep_replay: bool = False,
    quiet: bool = False,
    trust: bool = False,
    **options: Any,
) -> SweepFolder:
    """Run the jobs of a sweep folder that are not done yet.

    jobs: some of the folder's, instead of all
    retries: further tries of a job that failed
    keep_replay: keep the replay of finished runs, gigabytes each, to train them further
    trust: allow the import of names in a folder that was not made here
    options: of the backend: `workers` for local, `address` for ray, `partition` ... for slurm
    """
    if backend not in BACKENDS:
        raise UserError(unknown("backend", backend, BACKENDS))
    jobs = list(folder.jobs.values()) if jobs is None else jobs
    configs = [job.config for job in jobs]
    require_trusted(folder.path, imported(configs), trust)
    needs = memory_needs(jobs)  # for all backends, as it also finds a task that does not exist
    if not quiet:
        plan = f"{describe_runs(configs)} in {len(jobs)} job{'s' * (len(jobs) > 1)}"
        print(f"{plan} (--seeds-per-process changes their number).")
    run: Any
    if backend == "ray":
        from langevinrl.sweeps.ray import run_on_ray as run
    elif backend == "slurm":
        from langevinrl.sweeps.slurm import run_on_slurm as run
    else:
        from langevinrl.sweeps.local import run_here as run
    run(folder, jobs, needs, retries=retries, keep_replay=keep_replay, quiet=quiet, **options)
    return folder


def imported(configs: Sequence[RunConfig]) -> list[str]:
    """Return the names that runs would import, each once."""
    return sorted({name for config in configs for name in config.imported()})


def memory_needs(jobs: Sequence[Job]) -> list[int]:
    """Return the bytes of each job's replay, by building each task once."""
    sizes = {}
    needs = []
    for config in (job.config.resolved() for job in jobs):  # which also validates it
        task = json.dumps([config.env, config.env_kwargs])
        if task not in sizes:
            sizes[task] = task_sizes(config.env, config.env_kwargs)
        needs.append(replay_bytes(config, sizes[task].obs_dim, sizes[task].act_dim))
    return needs
