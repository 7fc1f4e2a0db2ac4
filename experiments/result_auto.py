"""NC-LQL auto beside SAC and SBX's SAC: tables and figure of results/auto.

Returns are normalised per task, 0 for random actions and 1 for the best evaluation of any run.  The
score of a run at a time is its last evaluation before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import fmean
from typing import TypeAlias

import numpy as np
from contest import Row, read_rows
from reference_policies import reference
from result_files import (
    RESULTS,
    block,
    joined,
    plural,
    read_csv,
    table,
    value_at,
    whole,
)

from langevinrl.analysis import find_runs
from langevinrl.analysis.figures import draw_band, panels, share_legend, write_figure
from langevinrl.analysis.statistics import (
    Estimate,
    Scores,
    estimate,
    estimate_curve,
    iqm,
    probability_of_improvement,
)
from langevinrl.registry import METHODS

HERE = RESULTS / "auto"
LABELS = {
    "nclql-auto": "NC-LQL auto",
    "sac:short": "SAC",
    "sbx-sac": "SBX SAC",
}
COLOURS = dict(zip(LABELS, ("#332288", "#009E73", "#888888"), strict=True))
ABLATED = {
    "nclql-auto": "defaults",
    "nclql-auto,calm_updates=1": "no calm start",
    "nclql-auto,smoothing=0": "no smoothing: the same value at all levels",
    "nclql-auto,noise_scale=1": "noise does not fall",
    "nclql-auto,slow_rate=1": "evaluation with the weights, not their slow average",
}
TUNED = ("nclql-auto", "sac:short")
MINUTES = (1, 3, 6)
LAST = 5  # evaluations at the end of a run that show a collapse

Curves: TypeAlias = dict[tuple[str, str], dict[int, list[Row]]]  # by contestant, task and seed


@cache
def curves(folder: str = "") -> Curves:
    """Return the curves of the comparison, or of a folder below it."""
    found: Curves = defaultdict(lambda: defaultdict(list))
    for row in read_rows(HERE / folder / "learning.csv"):
        found[row.contestant, row.env][row.seed].append(row)
    return found


def tasks_of(*contestants: str) -> list[str]:
    """Return the tasks on which all of them have two seeds; fewer give no interval."""
    tasks = [
        {env for (name, env), runs in curves().items() if name == own and len(runs) > 1}
        for own in contestants
    ]
    return sorted(set.intersection(*tasks))


@cache
def best(env: str) -> float:
    """Return the best evaluation of any run on a task."""
    own = [run for (_, task), runs in curves().items() if task == env for run in runs.values()]
    return max(row.score for run in own for row in run)


def normalised(env: str, score: float) -> float:
    low = reference(env, "random")
    return (score - low) / (best(env) - low)


def at(minute: float, run: Sequence[Row]) -> float:
    """Return a run's last evaluation before a time."""
    return value_at([(row.seconds, row.score) for row in run], 60 * minute)


def late(run: Sequence[Row]) -> float:
    """Return the mean of a run's last evaluations; single ones vary much."""
    return fmean(row.score for row in run[-LAST:])


def scores(
    contestant: str, envs: Sequence[str], value: Callable[[Sequence[Row]], float]
) -> list[np.ndarray]:
    """Return normalised values of runs, one array of seeds per task."""
    runs = [curves()[contestant, env].values() for env in envs]
    return [
        np.array([normalised(env, value(run)) for run in own])
        for env, own in zip(envs, runs, strict=True)
    ]


def shown(found: Estimate) -> str:
    interval = f" ({found.low:.2f} to {found.high:.2f})" if np.isfinite(found.low) else ""
    return f"{found.value:.2f}{interval}"


def difference(first: Scores, second: Scores) -> np.ndarray:
    return iqm(first) - iqm(second)


@block
def auto_budget() -> str:
    """Count the trial runs of both methods."""
    runs = {
        (row["method"], row["trial"], row["fields"], row["task"], row["seed"])
        for row in read_csv("auto/choosing.csv")
    }
    counts = Counter(method for method, *_ in runs)
    words = [f"{counts[name]} of {METHODS[name].label}" for name in ("nclql-auto", "sac")]
    return f"Trial runs: {joined(words)}."


@block
def auto_progress() -> str:
    """Tabulate the seeds that each contestant has on each task, and the code."""
    rows = []
    for (name, env), runs in sorted(curves().items()):
        codes = sorted({row.code for run in runs.values() for row in run})
        rows.append((env, LABELS[name], ", ".join(map(str, sorted(runs))), ", ".join(codes)))
    return table(("task", "method", "seeds", "code"), rows)


@block
def auto_summary() -> str:
    """Say in a sentence how both methods compare at three times."""
    envs = tasks_of(*TUNED)
    least = min(len(curves()[name, env]) for name in TUNED for env in envs)

    def compared(value: Callable[[Sequence[Row]], float]) -> str:
        ours, sac = (scores(name, envs, value) for name in TUNED)
        found = estimate(difference, ours, sac)
        clear = "clear" if found.low * found.high > 0 else "not clear"
        return f"{float(iqm(ours)):.2f} and {float(iqm(sac)):.2f} ({clear})"

    words = [f"{compared(partial(at, m))} after {plural(m, 'minute')}" for m in MINUTES]
    more = fmean(steps("sac:short", env) / steps("nclql-auto", env) for env in envs)
    return (
        f"NC-LQL auto and SAC, both tuned for runs of minutes, on {len(envs)} tasks with "
        f"{plural(least, 'seed')} each: interquartile mean of normalised returns {joined(words)}. "
        f"Single evaluations vary much: the mean of the last five has {compared(late)}. "
        "A difference is clear if its 95% interval excludes zero. SAC's updates cost less: it "
        f"took {more:.1f} times as many steps in the same time."
    )


def steps(contestant: str, env: str) -> float:
    """Return the environment steps of a run, mean over seeds."""
    return fmean(run[-1].env_steps for run in curves()[contestant, env].values())


@block
def auto_iqm() -> str:
    """Tabulate IQM, its difference and the probability of improvement over SAC at three times."""
    envs = tasks_of(*TUNED)
    rows = []
    cases: dict[str, Callable[[Sequence[Row]], float]] = {
        f"at {minute}": partial(at, minute) for minute in MINUTES
    }
    for label, value in (cases | {f"last {LAST} evaluations": late}).items():
        ours, sac = (scores(name, envs, value) for name in TUNED)
        found = [estimate(iqm, ours), estimate(iqm, sac), estimate(difference, ours, sac)]
        found.append(estimate(probability_of_improvement, ours, sac))
        rows.append((label, *map(shown, found)))
    head = ("minutes", "NC-LQL auto", "SAC", "difference", "probability of improvement")
    return table(head, rows)


@block
def auto_tasks() -> str:
    """Tabulate each task's return at the end: mean over seeds, and each seed's."""
    rows = []
    for env in sorted({env for _, env in curves()}):
        for name, label in LABELS.items():
            runs = curves().get((name, env))
            if not runs:
                continue
            ends = [at(MINUTES[-1], run) for run in runs.values()]
            each = ", ".join(whole(end) for end in ends)
            score = f"{fmean(normalised(env, end) for end in ends):.2f}"
            rows.append(
                (env, label, whole(fmean(ends)), score, each, whole(reference(env, "zero")))
            )
    return table(("task", "method", "return", "normalised", "each seed", "zero action"), rows)


@block
def auto_collapse() -> str:
    """Tabulate the least of the last five evaluations as a share of the greatest."""
    rows = []
    for env in tasks_of(*TUNED):
        row = [env]
        for name in TUNED:
            ends = [[r.score for r in run][-LAST:] for run in curves()[name, env].values()]
            row.append(
                ", ".join(f"{min(end) / max(end):.2f}" for end in ends if max(end) > 0) or "–"
            )
        rows.append(row)
    return table(("task", "NC-LQL auto, each seed", "SAC, each seed"), rows)


@block
def auto_ablation() -> str:
    """Tabulate the defaults and the defaults without each part, mean of the last evaluations."""
    found = curves("ablation")
    envs = sorted({env for _, env in found})
    rows = []
    for name, label in ABLATED.items():
        ends = [[late(run) for run in found[name, env].values()] for env in envs]
        rows.append((label, *(", ".join(map(whole, own)) for own in ends)))
    return table(("setting", *envs), rows)


@block
def auto_soft() -> str:
    """Tabulate hard and soft values in the TD target, mean of the last two evaluations."""
    found: dict[str, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in find_runs([HERE / "soft"]):
        ends = [float(series.returns[-2:].mean()) for series in record.series]
        found[record.env][record.config["hyperparameters"]["soft"]] += ends
    cells = [
        (env, *(", ".join(map(whole, own[soft])) for soft in (False, True)))
        for env, own in sorted(found.items())
    ]
    return table(("task", "hard values", "soft values"), cells)


def draw() -> None:
    """Draw IQM over all tasks and the return of each task, against minutes of CPU time."""
    minutes = np.linspace(0.3, MINUTES[-1], 20)

    def grid(name: str, env: str) -> np.ndarray:  # (seeds, times)
        return np.array([[at(m, run) for m in minutes] for run in curves()[name, env].values()])

    envs, shared = sorted({env for _, env in curves()}), tasks_of(*TUNED)
    figure, axes = panels(1 + len(envs))
    for name in TUNED:
        every = [np.vectorize(partial(normalised, env))(grid(name, env)) for env in shared]
        draw_band(axes[0], minutes, estimate_curve(every, iqm), COLOURS[name], label=LABELS[name])
    axes[0].set_title(f"IQM over {len(shared)} tasks, normalised", fontsize=11)
    for axis, env in zip(axes[1:], envs, strict=True):
        for name, label in LABELS.items():
            if (name, env) in curves():
                found = estimate_curve([grid(name, env)])
                draw_band(axis, minutes, found, COLOURS[name], label=label)
        axis.set_title(env, fontsize=11)
    for axis in axes[-3:]:
        axis.set_xlabel("minutes of CPU time")
    share_legend(figure, axes, list(LABELS.values()))
    write_figure(figure, HERE / "learning.png")
