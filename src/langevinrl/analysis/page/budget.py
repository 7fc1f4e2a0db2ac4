"""What was run, in a line of facts, and what so much training can and cannot say, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from langevinrl.analysis.page.health import made_with
from langevinrl.analysis.paper import ITERATIONS
from langevinrl.analysis.records import Group, RunRecord

WHOLE = 0.95  # from this share on, a run is as long as the paper's
LISTED = 12  # names of methods spelled out in the header


def describe_facts(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Name and value of what the header says."""
    methods = list(dict.fromkeys(group.label for group in groups))
    tasks = list(dict.fromkeys(group.env for group in groups))
    counts = [len(group.series) for group in groups]
    listed = ", ".join(methods[:LISTED]) + (", …" if len(methods) > LISTED else "")
    return [
        (_plural(len(methods), "method"), listed or "none"),
        (_plural(len(tasks), "task"), ", ".join(tasks) or "none"),
        ("Seeds per curve", _between(counts, str) if counts else "none"),
        ("Runs", str(len(records))),
        ("Training length", _length(groups)),
        ("Made with", ", ".join(made_with(records)) or "not recorded"),
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


def _length(groups: Sequence[Group]) -> str:
    shares = paper_shares(groups)
    if not shares:
        ends = [reached(group) for group in groups]
        return f"{_between(ends, '{:,}'.format)} iterations" if ends else "none"
    if min(shares) >= WHOLE:
        return "the paper's full training length"
    return f"{_between([100 * share for share in shares], _percent)} % of the paper's length"


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


def _between(values: Sequence[float], show: object) -> str:
    """One value if all are shown alike, else the least and the most."""
    assert callable(show)
    low, high = str(show(min(values))), str(show(max(values)))
    return low if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
