"""What was run, as facts, and in plain words what so much training can and cannot say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.page.health import summarise_versions
from langevinrl.analysis.paper import ITERATIONS
from langevinrl.analysis.records import RunRecord, split_version
from langevinrl.registry import label_of

WHOLE = 0.95  # from this share on, a run is as long as the paper's


def describe_facts(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Name and value of what the header says."""
    methods = name_methods(groups)
    tasks = sort_tasks(group.env for group in groups)
    counts = [len(group.series) for group in groups]
    return [
        (_plural(len(methods), "method"), ", ".join(methods) or "none"),
        (_plural(len(tasks), "task"), ", ".join(tasks) or "none"),
        ("Seeds per curve", _between(counts, str) if counts else "none"),
        ("Runs", str(len(records))),
        ("Training length", _length(groups)),
        ("Made with", summarise_versions(records)),
    ]


def name_methods(groups: Sequence[Group]) -> list[str]:
    """The methods by name, each with how many settings of it were run if there are several."""
    settings = {group.agent: dict[str, None]() for group in groups}
    for group in groups:
        settings[group.agent][group.label] = None
    return [
        f"{label_of(agent)} ({len(labels)} settings)" if len(labels) > 1 else label_of(agent)
        for agent, labels in settings.items()
    ]


def describe_budget(groups: Sequence[Group]) -> str:
    """A sentence or two: seeds and length, and what follows from them."""
    if not groups:
        return "No run has been evaluated yet, so there is nothing to compare."
    counts, shares = [len(group.series) for group in groups], paper_shares(groups)
    seeds = "one seed" if max(counts) == 1 else f"{_between(counts, str)} seeds"
    begin = f"Each curve rests on {seeds}"
    if shares:
        begin += f" and {_length(groups)}"
    return f"{begin}: {_seeds_say(min(counts))} {_length_says(groups, shares)}".strip()


def paper_shares(groups: Sequence[Group]) -> list[float]:
    """How much of the paper's training length each curve on one of its tasks has."""
    return [reached(group) / ITERATIONS[group.task] for group in groups if group.task in ITERATIONS]


def reached(group: Group) -> int:
    """The iteration up to which all seeds of a group were evaluated."""
    return min(int(one.iterations[-1]) for one in group.series)


def sort_tasks(envs: Iterable[str]) -> list[str]:
    """The paper's tasks in its order, then the others by name."""
    order = list(ITERATIONS)
    place = {task: i for i, task in enumerate(order)}
    return sorted(set(envs), key=lambda env: (place.get(split_version(env)[0], len(order)), env))


def _length(groups: Sequence[Group]) -> str:
    shares = paper_shares(groups)
    if not shares:
        ends = [reached(group) for group in groups]
        return f"{_between(ends, '{:,}'.format)} iterations" if ends else "none"
    if min(shares) >= WHOLE:
        return "the paper's full training length"
    length = f"{_between([100 * share for share in shares], _percent)} % of the paper's length"
    return length if len(shares) == len(groups) else f"{length} where it has one"


def _seeds_say(fewest: int) -> str:
    if fewest == 1:
        return (
            "this can show that a method learns, but not which of two is better, since nothing "
            "tells how much seeds differ."
        )
    if fewest < 5:
        return "large gaps are visible, but those about as wide as the bands may be chance."
    return "gaps much wider than the bands are unlikely to be chance; narrower ones are undecided."


def _length_says(groups: Sequence[Group], shares: Sequence[float]) -> str:
    if not shares:
        return "The paper reports no result for these tasks."
    if min(shares) >= WHOLE:
        return "Final returns may be held against the paper's."
    if len(shares) < len(groups):
        return "It shows early learning, and some tasks are not among the paper's."
    return "It shows early learning; it can neither confirm nor refute the paper's final results."


def _between(values: Sequence[float], show: Callable[[Any], str]) -> str:
    """One value if all are shown alike, else the least and the most."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
