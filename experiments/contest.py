"""Return against CPU time on one core: methods of this library and SBX's SAC and CrossQ.

From the root of the repository:

python experiments/contest.py nclql-auto sac:short sbx-sac --sbx-python sbx/bin/python

contestant.py says how contestants are named.  Each learns in a separate process pinned to one
core.  A finished curve is not made again, so a contest that was stopped goes on, and one with more
tasks or seeds can be added to the same folder.  SBX needs an environment of its own:
pip install sbx-rl 'gymnasium[mujoco]'.
"""

from __future__ import annotations

import csv
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import contestant
import tyro

from langevinrl.analysis.figures import panels, share_legend, write_figure
from langevinrl.analysis.groups import COLOURS
from langevinrl.storage.versions import versions

MOMENTS = (0.25, 0.5, 1.0)  # parts of the time at which the table shows the return
LATE = 1.01  # an evaluation happens at the first step after its time


@dataclass(frozen=True)
class Contest:
    """Let several methods learn for the same CPU time."""

    contestants: tyro.conf.Positional[tuple[str, ...]]
    tasks: tuple[str, ...] = ("HalfCheetah-v4", "Hopper-v4", "Walker2d-v4")
    minutes: float = 20.0  # of CPU time, for each run
    seed: int = 0  # first seed
    seeds: int = 2  # runs of each, with consecutive seeds
    sbx_python: str = sys.executable  # interpreter of an environment that has SBX
    out: Path = Path("bench")


class Row(NamedTuple):
    """One evaluation of one contestant."""

    contestant: str
    env: str
    seed: int
    seconds: float  # CPU time spent on learning
    env_steps: int
    score: float  # mean return


def run_all(contest: Contest) -> None:
    """Let every contestant learn every task with every seed, one process per core."""
    folder = contest.out / "learning"
    folder.mkdir(parents=True, exist_ok=True)
    cores: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)
    seeds = range(contest.seed, contest.seed + contest.seeds)

    def run(job: tuple[int, str, str]) -> None:
        seed, env, name = job
        path = folder / (re.sub(r"[^\w.,=-]+", "-", f"{name}-{env}-{seed}") + ".csv")
        if not (path.exists() and read_rows(path)[-1].seconds >= 54 * contest.minutes):
            core = cores.get()
            try:
                learn(contest, name, env, seed, core, path)
            finally:
                cores.put(core)
        print(f"{name} {env} seed {seed}: {read_rows(path)[-1].score:.0f}", flush=True)

    jobs = product(seeds, contest.tasks, contest.contestants)
    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, jobs))


def learn(contest: Contest, name: str, env: str, seed: int, core: int, path: Path) -> None:
    """Run one contestant in a process of its own; its output goes to a file beside its curve."""
    python = contest.sbx_python if name in contestant.SBX else sys.executable
    draft, log = path.with_suffix(".partial"), path.with_suffix(".log")
    numbers = [str(seed), str(core), str(60 * contest.minutes)]
    words = [python, contestant.__file__, name, env, *numbers, str(draft)]
    single = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    with log.open("w") as file:
        done = subprocess.run(words, stdout=file, stderr=file, env=os.environ | single)
    if done.returncode:
        sys.exit(f"{name} failed on {env}; see {log}")
    draft.replace(path)
    log.unlink()


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(r["contestant"], r["env"], int(r["seed"]), float(r["cpu_seconds"]),
                int(r.get("env_steps", 0)), float(r["return"]))
            for r in csv.DictReader(file)
        ]  # fmt: skip


def value_at(rows: Iterable[Row], seconds: float) -> float:
    """Return the mean over seeds of the last return at or before a time; NaN without any."""
    last: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: row.seconds):
        if row.seconds <= seconds * LATE:
            last[row.seed] = row
    return statistics.fmean(row.score for row in last.values()) if last else float("nan")


def print_table(rows: Sequence[Row], minutes: float) -> None:
    """Print each contestant's return at parts of the time."""
    times = [minutes * moment for moment in MOMENTS]
    print(f"{'task':26} {'contestant':20}" + "".join(f"{time:7g} min" for time in times))
    for env, name in sorted({(row.env, row.contestant) for row in rows}):
        own = [row for row in rows if (row.env, row.contestant) == (env, name)]
        values = "".join(f"{value_at(own, 60 * time):11.0f}" for time in times)
        print(f"{env:26} {name:20}{values}")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a panel per task: mean over seeds of each contestant, and each seed thinly."""
    envs = sorted({row.env for row in rows})
    names = sorted({row.contestant for row in rows})
    figure, axes = panels(len(envs))
    for axis, env in zip(axes, envs, strict=True):
        for name, colour in zip(names, COLOURS, strict=False):
            own = [row for row in rows if (row.env, row.contestant) == (env, name)]
            _draw_curves(axis, own, name, colour)
        axis.set_title(env, fontsize=11)
        axis.set(xlabel="minutes on one core")
    axes[0].set_ylabel("mean return")
    share_legend(figure, axes, names)
    write_figure(figure, path)


def _draw_curves(axis: Any, rows: Sequence[Row], name: str, colour: str) -> None:
    seeds = sorted({row.seed for row in rows})
    for seed in seeds if len(seeds) > 1 else ():
        own = [row for row in rows if row.seed == seed]
        axis.plot([r.seconds / 60 for r in own], [r.score for r in own], color=colour, alpha=0.25)
    times = sorted(row.seconds for row in rows if row.seed == seeds[0])
    means = [value_at(rows, time) for time in times]
    axis.plot([time / 60 for time in times], means, color=colour, label=name)


def collect(folder: Path, minutes: float) -> list[Row]:
    """Gather all finished curves in learning.csv, those of a longer contest cut at `minutes`."""
    rows = [row for path in sorted((folder / "learning").glob("*.csv")) for row in read_rows(path)]
    rows = [row for row in rows if row.seconds <= 60 * minutes * LATE]
    with (folder / "learning.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["contestant", "env", "seed", "cpu_seconds", "env_steps", "return"])
        writer.writerows(rows)
    return rows


def main(contest: Contest) -> None:
    contest.out.mkdir(parents=True, exist_ok=True)
    (contest.out / "versions.json").write_text(json.dumps(versions(), indent=2) + "\n")
    run_all(contest)
    rows = collect(contest.out, contest.minutes)
    draw(rows, contest.out / "learning.png")
    print_table(rows, contest.minutes)
    print(contest.out / "learning.csv")


if __name__ == "__main__":
    main(tyro.cli(Contest))
