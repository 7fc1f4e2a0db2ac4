"""The page's head: what was run, and what this much training can and cannot show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.page.health import summarise_versions
from langevinrl.analysis.records import RunRecord, task_of
from langevinrl.registry import label_of
from langevinrl.runs.config import PAPER_ITERATIONS

FULL = 0.95  # from this share on, a run counts as being as long as the paper's


def describe_facts(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Return names and values of the facts in the head."""
    labels: dict[str, set[str]] = {}
    for group in groups:
        labels.setdefault(group.agent, set()).add(group.label)
    methods = [
        label_of(agent) + (f" ({len(own)} settings)" if len(own) > 1 else "")
        for agent, own in labels.items()
    ]
    counts = [len(group.series) for group in groups]
    return [
        (f"Methods ({len(methods)})", ", ".join(methods) or "none"),
        (f"Tasks ({len({g.env for g in groups})})", ", ".join(sort_tasks(g.env for g in groups))),
        ("Seeds per curve", _range(counts, str) if counts else "none"),
        ("Runs", str(len(records))),
        ("Training length", _length(groups)),
        ("Made with", summarise_versions(records)),
    ]


def describe_budget(groups: Sequence[Group]) -> str:
    """Describe seeds and training length, and what they can show."""
    if not groups:
        return "No run has been evaluated yet, so there is nothing to compare."
    counts = [len(group.series) for group in groups]
    seeds = "one seed" if max(counts) == 1 else f"{_range(counts, str)} seeds"
    return f"Each curve has {seeds}. {_seeds_show(min(counts))} {_length_shows(groups)}"


def paper_shares(groups: Sequence[Group]) -> list[float]:
    """Return each curve's share of the paper's training length, on the paper's tasks."""
    return [
        _reached(group) / PAPER_ITERATIONS[group.task]
        for group in groups
        if group.task in PAPER_ITERATIONS
    ]


def _reached(group: Group) -> int:
    return min(int(one.iterations[-1]) for one in group.series)


def sort_tasks(envs: Iterable[str]) -> list[str]:
    """Sort tasks in the paper's order, then by name."""
    order = list(PAPER_ITERATIONS)
    place = {task: i for i, task in enumerate(order)}
    return sorted(set(envs), key=lambda env: (place.get(task_of(env), len(order)), env))


def _length(groups: Sequence[Group]) -> str:
    shares = paper_shares(groups)
    if not shares:
        ends = [_reached(group) for group in groups]
        return f"{_range(ends, '{:,}'.format)} iterations" if ends else "none"
    if min(shares) >= FULL:
        return "the paper's full training length"
    length = f"{_range([100 * share for share in shares], _percent)} % of the paper's length"
    return length if len(shares) == len(groups) else f"{length} on the paper's tasks"


def _seeds_show(fewest: int) -> str:
    if fewest == 1:
        return (
            "One seed can show that a method learns, but not which of two is better: the variation "
            "between seeds is unknown."
        )
    if fewest < 5:
        return "Large gaps are visible; gaps about as wide as the bands may be chance."
    return "Gaps much wider than the bands are unlikely to be chance; narrower ones are undecided."


def _length_shows(groups: Sequence[Group]) -> str:
    shares = paper_shares(groups)
    if len(shares) < len(groups):
        return "The paper has no result for some of these tasks."
    if min(shares) >= FULL:
        return "Runs have the paper's full length: final returns can be compared with the paper's."
    return (
        f"Runs have {_length(groups)}: they show early learning, and neither confirm nor refute "
        "the paper's results."
    )


def _range(values: Sequence[float], show: Callable[[Any], str]) -> str:
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"
