"""The page's head: what was run, and what this much training can and cannot show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.page.health import summarise_versions
from langevinrl.analysis.records import RunRecord, split_version
from langevinrl.registry import label_of
from langevinrl.runs.config import PAPER_ITERATIONS

FULL = 0.95  # from this share on, a run counts as being as long as the paper's


def describe_facts(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Return names and values of the facts in the head."""
    methods = name_methods(groups)
    tasks = sort_tasks(group.env for group in groups)
    counts = [len(group.series) for group in groups]
    return [
        (_plural(len(methods), "method"), ", ".join(methods) or "none"),
        (_plural(len(tasks), "task"), ", ".join(tasks) or "none"),
        ("Seeds per curve", _range(counts, str) if counts else "none"),
        ("Runs", str(len(records))),
        ("Training length", _length(groups)),
        ("Made with", summarise_versions(records)),
    ]


def name_methods(groups: Sequence[Group]) -> list[str]:
    """Return the methods' names, with the number of settings if there are several."""
    settings: dict[str, set[str]] = {}
    for group in groups:
        settings.setdefault(group.agent, set()).add(group.label)
    return [
        f"{label_of(agent)} ({len(labels)} settings)" if len(labels) > 1 else label_of(agent)
        for agent, labels in settings.items()
    ]


def describe_budget(groups: Sequence[Group]) -> str:
    """Describe seeds and training length, and what they can show."""
    if not groups:
        return "No run has been evaluated yet, so there is nothing to compare."
    counts, shares = [len(group.series) for group in groups], paper_shares(groups)
    seeds = "one seed" if max(counts) == 1 else f"{_range(counts, str)} seeds"
    length = f" and {_length(groups)}" if shares else ""
    return f"Each curve has {seeds}{length}. {_seeds_show(min(counts))} {_length_shows(groups)}"


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
    return sorted(set(envs), key=lambda env: (place.get(split_version(env)[0], len(order)), env))


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
    if not shares:
        return "The paper reports no result for these tasks."
    if min(shares) >= FULL:
        return "Final returns can be compared with the paper's."
    if len(shares) < len(groups):
        return "The curves show early learning, and some tasks are not in the paper."
    return "The curves show early learning; they neither confirm nor refute the paper's results."


def _range(values: Sequence[float], show: Callable[[Any], str]) -> str:
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
