"""Return against time on one core: this library's presets beside the algorithms of SBX.

Each contestant learns in a process of its own, by an interpreter of its own, held to one core.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from langevinrl.analysis.colours import COLOURS
from langevinrl.analysis.figures import panels, share_legend, write_figure
from langevinrl.bench import contestant
from langevinrl.errors import UserError, unknown
from langevinrl.registry import METHODS, label_of
from langevinrl.runs.config import RunConfig, agent_class
from langevinrl.runs.presets import preset_names

MOMENTS = (0.25, 0.5, 1.0)  # of the time, at which the table tells the return
LATE = 1.01  # an evaluation comes at the step after its time


class Row(NamedTuple):
    """One evaluation of one contestant."""

    contestant: str
    env: str
    seed: int
    seconds: float  # of CPU time spent on learning
    total: float  # mean return


@dataclass(frozen=True)
class Contest:
    """Who learns what, for how long."""

    contestants: Sequence[str]
    envs: Sequence[str]
    seeds: Sequence[int]
    minutes: float
    rivals: str  # interpreter that has SBX
    out: Path


def measure_learning(contest: Contest) -> list[Row]:
    """Let every contestant learn every task from every seed; write learning.csv and .png."""
    _check(contest)
    parts = contest.out / "learning"
    parts.mkdir(parents=True, exist_ok=True)
    cores: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)
    jobs = list(product(contest.seeds, contest.envs, contest.contestants))
    console, lock = Console(), threading.Lock()

    paths = {job: parts / curve_name(*job) for job in jobs}

    def run(job: tuple[int, str, str]) -> None:
        (seed, env, name), path = job, paths[job]
        if not is_whole(path, contest.minutes):
            core = cores.get()
            try:
                _learn(contest, name, env, seed, core, path)
            finally:
                cores.put(core)
        with lock:
            console.print(f"{name} {env} seed {seed}: {read_rows([path])[-1].total:.0f}")

    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, jobs))
    # A curve from an earlier, longer contest is shown as far as this one goes.
    last = 60 * contest.minutes * LATE
    rows = [row for row in read_rows(sorted(paths.values())) if row.seconds <= last]
    write_rows(rows, contest.out / "learning.csv")
    draw(rows, contest.out / "learning.png")
    console.print(tabulate(rows, contest.minutes))
    console.print(str(contest.out / "learning.csv"))
    return rows


def _check(contest: Contest) -> None:
    if not hasattr(os, "sched_setaffinity"):
        raise UserError("a process can be held to one core on Linux only")
    known = [*contestant.SBX, *_ours()]
    for name in contest.contestants:
        if name not in known:
            raise UserError(unknown("contestant", name, known))
    if not contest.minutes > 0 or not contest.seeds or not contest.envs:
        raise UserError("expected some minutes, seeds and tasks to learn")
    if any(name in contestant.SBX for name in contest.contestants):
        asked = [contest.rivals, "-c", "import sbx"]
        try:
            found = subprocess.run(asked, capture_output=True).returncode == 0
        except OSError:
            found = False
        if not found:
            raise UserError(
                f"{contest.rivals} cannot import sbx: give the interpreter of an environment that "
                "has it (pip install sbx-rl 'gymnasium[mujoco]') by --rivals, or leave the sbx-... "
                "contestants out"
            )


def _ours() -> Iterator[str]:
    """AGENT-PRESET, for each agent's presets."""
    for agent in METHODS:
        yield from (f"{agent}-{preset}" for preset in preset_names(agent_class(agent)))


def curve_name(seed: int, env: str, name: str) -> str:
    """The file of a curve; what the contestant sets is in its name, so that no other is taken."""
    settings = str(contestant.SBX.get(name))
    if name not in contestant.SBX:
        agent, _, preset = name.partition("-")
        config = RunConfig(env, agent, seed=seed, iterations=1, preset=preset).resolved()
        settings = json.dumps(dataclasses.asdict(config), sort_keys=True)
    return f"{name}-{env}-{seed}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}.csv"


def _learn(contest: Contest, name: str, env: str, seed: int, core: int, path: Path) -> None:
    """One contestant in a process of its own; its words are kept beside its curve."""
    python = contest.rivals if name in contestant.SBX else sys.executable
    draft, log = path.with_suffix(".partial"), path.with_suffix(".log")
    numbers = [str(seed), str(core), str(60 * contest.minutes)]
    words = [python, contestant.__file__, name, env, *numbers, str(draft)]
    single = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    with log.open("w") as file:
        done = subprocess.run(words, stdout=file, stderr=file, env=os.environ | single)
    if done.returncode:
        lines = log.read_text().strip().splitlines() or ["it said nothing"]
        raise UserError(f"{name} failed on {env}: {lines[-1]} (all of it in {log})")
    draft.replace(path)
    log.unlink()


def is_whole(path: Path, minutes: float) -> bool:
    """Whether a contestant's curve is there and as long as asked for."""
    return path.exists() and read_rows([path])[-1].seconds >= 60 * minutes * 0.9


def read_rows(paths: Iterable[Path]) -> list[Row]:
    rows = []
    for path in paths:
        with path.open(newline="") as file:
            for line in csv.DictReader(file):
                head = (line["contestant"], line["env"], int(line["seed"]))
                rows.append(Row(*head, float(line["cpu_seconds"]), float(line["return"])))
    return rows


def write_rows(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["contestant", "env", "seed", "cpu_seconds", "return"])
        writer.writerows(rows)


def value_at(rows: Iterable[Row], seconds: float) -> float | None:
    """The mean over seeds of the last return at or before a time; None if there is none."""
    last: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: row.seconds):
        if row.seconds <= seconds * LATE:
            last[row.seed] = row
    return statistics.fmean(row.total for row in last.values()) if last else None


def tabulate(rows: Sequence[Row], minutes: float) -> Table:
    """A line per task and contestant: the return at parts of the time."""
    table = Table(title="Mean return after minutes on one core", box=box.SIMPLE_HEAD)
    table.add_column("task")
    table.add_column("contestant")
    for moment in MOMENTS:
        table.add_column(f"{minutes * moment:g}", justify="right")
    for env in sorted({row.env for row in rows}):
        for name in sorted({row.contestant for row in rows if row.env == env}):
            own = [row for row in rows if (row.env, row.contestant) == (env, name)]
            values = [value_at(own, 60 * minutes * moment) for moment in MOMENTS]
            table.add_row(env, name, *("-" if v is None else f"{v:.0f}" for v in values))
    return table


def draw(rows: Sequence[Row], path: Path) -> None:
    """A panel per task, a curve per contestant: the mean over seeds, and each seed thinly."""
    envs = sorted({row.env for row in rows})
    names = sorted({row.contestant for row in rows})
    figure, axes = panels(len(envs))
    for axis, env in zip(axes, envs, strict=True):
        for name, colour in zip(names, COLOURS, strict=False):
            own = [row for row in rows if (row.env, row.contestant) == (env, name)]
            _draw_curves(axis, own, full_name(name), colour)
        axis.set_title(env, fontsize=11)
        axis.set(xlabel="minutes on one core")
    axes[0].set_ylabel("mean return")
    share_legend(figure, axes, [full_name(name) for name in names])
    write_figure(figure, path)


def full_name(contestant: str) -> str:
    """What people call it: NC-LQL fast-balance, SBX CrossQ equal."""
    agent, _, preset = contestant.partition("-")
    if agent == "sbx":
        algorithm, _, how = preset.partition("-")
        written = {"sac": "SAC", "crossq": "CrossQ"}
        return f"SBX {written[algorithm]} {how}".strip()
    return f"{label_of(agent)} {preset}".strip()


def _draw_curves(axis: Any, rows: Sequence[Row], name: str, colour: str) -> None:
    seeds = sorted({row.seed for row in rows})
    for seed in seeds if len(seeds) > 1 else ():
        own = [row for row in rows if row.seed == seed]
        axis.plot([r.seconds / 60 for r in own], [r.total for r in own], color=colour, alpha=0.25)
    times = sorted({row.seconds for row in rows if row.seed == seeds[0]}) if seeds else []
    means = [value_at(rows, time) for time in times]
    axis.plot([time / 60 for time in times], means, color=colour, label=name)
