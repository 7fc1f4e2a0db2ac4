"""Return against CPU time on one core: methods of this library and SBX's SAC and CrossQ.

From the root of the repository:

python experiments/contest.py nclql-auto sac:short sbx-sac --sbx-python sbx/bin/python

contestant.py says how contestants are named.  Each learns in a separate process pinned to one
core.  Its curve is added to learning.csv when it is finished, and a curve in that file is not made
again: a contest that was stopped goes on, and one with more tasks or seeds can be added to it.
SBX needs an environment of its own: pip install sbx-rl 'gymnasium[mujoco]'.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import contestant
import tyro
from result_files import LATE, value_at

from langevinrl.analysis.figures import panels, share_legend, write_figure
from langevinrl.analysis.groups import COLOURS
from langevinrl.storage.versions import versions

MOMENTS = (0.25, 0.5, 1.0)  # parts of the time at which the table shows the return


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
    env_steps: int  # 0 if unknown
    score: float  # mean return
    code: str  # commit or version that made the run


def run_all(contest: Contest) -> list[Row]:
    """Let every contestant learn every task with every seed, one process per core.

    Curves in learning.csv are not made again; each new one is added to it at once, in place of one
    that was shorter.
    """
    path = contest.out / "learning.csv"
    rows = read_rows(path) if path.exists() else []
    done = {row[:3] for row in rows if row.seconds >= 54 * contest.minutes}
    cores: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)
    adding = Lock()

    def run(job: tuple[int, str, str]) -> None:
        seed, env, name = job
        if (name, env, seed) in done:
            return
        core = cores.get()
        try:
            curve = learn(contest, name, env, seed, core)
        finally:
            cores.put(core)
        with adding:
            rows[:] = [row for row in rows if row[:3] != (name, env, seed)] + curve
            write_rows(rows, path)
        print(f"{name} {env} seed {seed}: {curve[-1].score:.0f}", flush=True)

    seeds = range(contest.seed, contest.seed + contest.seeds)
    jobs = product(seeds, contest.tasks, contest.contestants)
    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, jobs))
    return rows


def learn(contest: Contest, name: str, env: str, seed: int, core: int) -> list[Row]:
    """Run one contestant in a process of its own; its output is kept if it fails."""
    python = contest.sbx_python if name in contestant.SBX else sys.executable
    draft = contest.out / (re.sub(r"[^\w.,=-]+", "-", f"{name}-{env}-{seed}") + ".partial")
    log = draft.with_suffix(".log")
    numbers = [str(seed), str(core), str(60 * contest.minutes)]
    words = [python, contestant.__file__, name, env, *numbers, str(draft)]
    single = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    with log.open("w") as file:
        done = subprocess.run(words, stdout=file, stderr=file, env=os.environ | single)
    if done.returncode:
        sys.exit(f"{name} failed on {env}; see {log}")
    curve = read_rows(draft)
    draft.unlink()
    log.unlink()
    return curve


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(r["contestant"], r["env"], int(r["seed"]), float(r["cpu_seconds"]),
                int(r["env_steps"] or 0), float(r["return"]), r["code"])
            for r in csv.DictReader(file)
        ]  # fmt: skip


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Replace the file by these rows, sorted."""
    draft = path.with_suffix(".new")
    with draft.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(contestant.COLUMNS)
        writer.writerows(sorted(rows))
    draft.replace(path)


def mean_at(rows: Iterable[Row], seconds: float) -> float:
    """Return the mean over seeds of the last return at or before a time; NaN without any."""
    points: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        points[row.seed].append((row.seconds, row.score))
    found = [value_at(curve, seconds) for curve in points.values()]
    known = [value for value in found if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def print_table(rows: Sequence[Row], minutes: float) -> None:
    """Print each contestant's return at parts of the time."""
    times = [minutes * moment for moment in MOMENTS]
    print(f"{'task':26} {'contestant':20}" + "".join(f"{time:7g} min" for time in times))
    for env, name in sorted({(row.env, row.contestant) for row in rows}):
        own = [row for row in rows if (row.env, row.contestant) == (env, name)]
        values = "".join(f"{mean_at(own, 60 * time):11.0f}" for time in times)
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
    means = [mean_at(rows, time) for time in times]
    axis.plot([time / 60 for time in times], means, color=colour, label=name)


def main(contest: Contest) -> None:
    contest.out.mkdir(parents=True, exist_ok=True)
    (contest.out / "versions.json").write_text(json.dumps(versions(), indent=2) + "\n")
    rows = [row for row in run_all(contest) if row.seconds <= 60 * contest.minutes * LATE]
    draw(rows, contest.out / "learning.png")
    print_table(rows, contest.minutes)
    print(contest.out / "learning.csv")


if __name__ == "__main__":
    main(tyro.cli(Contest))
