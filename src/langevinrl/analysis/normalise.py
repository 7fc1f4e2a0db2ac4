"""Returns of different tasks on one scale, and the scale in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.groups import Group
from langevinrl.analysis.records import split_version
from langevinrl.errors import UserError, unknown

Kind: TypeAlias = Literal["min-max", "random-to-best"]

# Mean return of uniform random actions over a hundred episodes, as measured for
# results/reference/returns.csv by experiments/reference_policies.py.
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
        "methods shown had at any evaluation; so scores depend on which methods are shown."
    ),
    "random-to-best": (
        "On each task, 0 is the mean return of uniform random actions (a hundred episodes) and 1 "
        "the last mean return over seeds of the best of the methods shown."
    ),
}


@dataclass(frozen=True)
class Normalisation:
    """Which return on each task is scored 0 and which 1."""

    kind: Kind
    bounds: dict[str, tuple[float, float]]  # by task, without its version

    def score(self, task: str, returns: np.ndarray) -> np.ndarray:
        """Returns of any shape as scores; a return that is infinite or no number is scored 0."""
        low, high = self.bounds[task]
        scores = (returns - low) / (high - low)
        return np.where(np.isfinite(returns), scores, 0.0)

    def in_words(self) -> str:
        """What 0 and 1 mean, and the numbers they stand for."""
        numbers = [f"{task} {low:.4g} to {high:.4g}" for task, (low, high) in self.bounds.items()]
        return f"{WORDS[self.kind]} Here: {'; '.join(numbers)}."


def require_one_version(groups: Sequence[Group]) -> None:
    """Refuses runs on two versions of a task: their returns are of different problems."""
    versions: dict[str, set[str]] = {}
    for group in groups:
        versions.setdefault(group.task, set()).add(group.env)
    for envs in versions.values():
        if len(envs) > 1:
            raise UserError(
                f"{' and '.join(sorted(envs))} are different tasks: leave one out, or say that "
                "their runs may be mixed: --mix-versions, or mix_versions=True in Python"
            )


def normalise(
    groups: Sequence[Group], kind: Kind = "min-max", mix_versions: bool = False
) -> Normalisation:
    """The scale of each task that the groups have runs on.

    normalise(group_runs(find_runs([Path("runs")]))).score("Hopper", returns)
    """
    if kind not in get_args(Kind):
        raise UserError(unknown("normalisation", kind, get_args(Kind)))
    if not mix_versions:
        require_one_version(groups)
    tasks: dict[str, list[Group]] = {}
    for group in groups:
        tasks.setdefault(group.task, []).append(group)
    bounds_of = _min_max if kind == "min-max" else _random_to_best
    return Normalisation(kind, {task: bounds_of(some) for task, some in sorted(tasks.items())})


def _curves(groups: Sequence[Group]) -> list[np.ndarray]:
    """The mean over seeds at each evaluation, finite ones only, of each group that has any."""
    curves = [mean_curve(group)[1] for group in groups]
    return [finite for curve in curves if (finite := curve[np.isfinite(curve)]).size]


def _min_max(groups: Sequence[Group]) -> tuple[float, float]:
    means = np.concatenate([np.empty(0), *_curves(groups)])
    if not means.size or means.min() == means.max():
        raise UserError(
            f"cannot put {groups[0].env} on a scale: its runs have fewer than two different mean "
            "returns. Leave it out, or use the normalisation random-to-best"
        )
    return float(means.min()), float(means.max())


def _random_to_best(groups: Sequence[Group]) -> tuple[float, float]:
    env = groups[0].env
    missing = [group.env for group in groups if group.env not in RANDOM_RETURNS]
    if missing:
        near = [name for name in RANDOM_RETURNS if split_version(name)[0] == groups[0].task]
        hint = f" (only of {near[0]})" if near else ""
        raise UserError(
            f"no return of random actions on {missing[0]} is known{hint}: use the normalisation "
            "min-max"
        )
    low = float(np.mean([RANDOM_RETURNS[group.env] for group in groups]))
    high = max((float(curve[-1]) for curve in _curves(groups)), default=low)
    if high <= low:
        raise UserError(
            f"no method shown ends above random actions on {env} ({low:.4g}), so nothing there "
            "can stand for 1: use the normalisation min-max"
        )
    return low, high
