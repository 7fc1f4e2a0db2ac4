"""Normalisation of returns, so that different tasks can be averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.groups import Group, by_task
from langevinrl.analysis.records import task_of
from langevinrl.errors import UserError, unknown

Kind: TypeAlias = Literal["min-max", "random-to-best"]

# Mean return of uniform random actions over 100 episodes, from results/reference/returns.csv
# (experiments/reference_policies.py).
RANDOM_RETURNS: dict[str, float] = {
    "Pendulum-v1": -1197.18,
    "InvertedDoublePendulum-v4": 60.0978,
    "Reacher-v4": -42.9266,
    "Pusher-v4": -148.402,
    "HalfCheetah-v4": -271.953,
    "Hopper-v4": 18.0288,
    "Walker2d-v4": 3.00568,
    "Swimmer-v4": 3.16427,
    "Ant-v4": -56.7684,
    "Humanoid-v4": 117.844,
}
WORDS: dict[str, str] = {
    "min-max": (
        "On each task, 0 is the lowest and 1 the highest mean return over seeds that any of the "
        "methods shown had at any evaluation. Scores depend on which methods are shown."
    ),
    "random-to-best": (
        "On each task, 0 is the mean return of uniform random actions (100 episodes) and 1 "
        "the last mean return over seeds of the best method shown."
    ),
}


@dataclass(frozen=True)
class Normalisation:
    """The returns scored 0 and 1 on each task."""

    kind: Kind
    bounds: dict[str, tuple[float, float]]  # by task, without version

    def score(self, task: str, returns: np.ndarray) -> np.ndarray:
        """Convert returns of any shape to scores; infinite returns and nan score 0."""
        low, high = self.bounds[task]
        scores = (returns - low) / (high - low)
        return np.where(np.isfinite(returns), scores, 0.0)

    def in_words(self) -> str:
        """Explain which returns score 0 and 1."""
        numbers = [f"{task} {low:.4g} to {high:.4g}" for task, (low, high) in self.bounds.items()]
        return f"{WORDS[self.kind]} Here: {'; '.join(numbers)}."


def require_one_version(groups: Sequence[Group]) -> None:
    """Raise if there are runs on two versions of a task: their returns do not compare."""
    for some in by_task(groups).values():
        envs = sorted({group.env for group in some})
        if len(envs) > 1:
            raise UserError(
                f"{' and '.join(envs)} are different tasks: leave one out, or allow mixing "
                "them with --mix-versions (mix_versions=True in Python)"
            )


def normalise(groups: Sequence[Group], kind: Kind = "min-max") -> Normalisation:
    """Find the returns scored 0 and 1 on each task of the groups.

    normalise(group_runs(find_runs(["runs"]))).score("Hopper", returns)
    """
    if kind not in get_args(Kind):
        raise UserError(unknown("normalisation", kind, get_args(Kind)))
    bounds_of = _min_max if kind == "min-max" else _random_to_best
    tasks = sorted(by_task(groups).items())
    return Normalisation(kind, {task: bounds_of(some) for task, some in tasks})


def _curves(groups: Sequence[Group]) -> list[np.ndarray]:
    """Return each group's mean over seeds at each evaluation, finite ones only."""
    curves = [mean_curve(group)[1] for group in groups]
    return [finite for curve in curves if (finite := curve[np.isfinite(curve)]).size]


def _min_max(groups: Sequence[Group]) -> tuple[float, float]:
    means = np.concatenate([np.empty(0), *_curves(groups)])
    if not means.size or means.min() == means.max():
        raise UserError(
            f"cannot normalise {groups[0].env}: its runs have fewer than two different mean "
            "returns. Leave it out, or use the normalisation random-to-best"
        )
    return float(means.min()), float(means.max())


def _random_to_best(groups: Sequence[Group]) -> tuple[float, float]:
    env = groups[0].env
    missing = [group.env for group in groups if group.env not in RANDOM_RETURNS]
    if missing:
        near = [name for name in RANDOM_RETURNS if task_of(name) == groups[0].task]
        hint = f" (only for {near[0]})" if near else ""
        raise UserError(
            f"no return of random actions is known for {missing[0]}{hint}: use the normalisation "
            "min-max"
        )
    low = float(np.mean([RANDOM_RETURNS[group.env] for group in groups]))
    high = max((float(curve[-1]) for curve in _curves(groups)), default=low)
    if high <= low:
        raise UserError(
            f"no method shown ends above random actions on {env} ({low:.4g}), so no return can "
            "score 1: use the normalisation min-max"
        )
    return low, high
