"""The page's head: what was run, and what this much training can and cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    tasks = sort_tasks(group.env for group in groups)
    return [
        (f"Methods ({len(methods)})", ", ".join(methods) or "none"),
        (f"Tasks ({len(tasks)})", ", ".join(tasks) or "none"),
        ("Seeds per curve", _range([str(n) for n in sorted(len(g.series) for g in groups)])),
        ("Runs", str(len(records))),
        ("Iterations", _range([f"{end:,}" for end in sorted(map(_reached, groups))])),
        ("Made with", summarise_versions(records)),
    ]


def describe_budget(groups: Sequence[Group]) -> str:
    """Describe seeds and training length, and what they can show."""
    if not groups:
        return "No run has been evaluated yet, so there is nothing to compare."
    fewest = min(len(group.series) for group in groups)
    if fewest == 1:
        seeds = (
            "One seed can show that a method learns, but not which of two is better: the variation "
            "between seeds is unknown."
        )
    elif fewest < 5:
        seeds = "Large gaps are visible; gaps about as wide as the bands may be chance."
    else:
        seeds = (
            "Gaps much wider than the bands are unlikely to be chance; narrower ones are undecided."
        )
    return f"{seeds} {_compare_with_paper(groups)}"


def _compare_with_paper(groups: Sequence[Group]) -> str:
    known = [group for group in groups if group.task in PAPER_ITERATIONS]
    shares = sorted(_reached(group) / PAPER_ITERATIONS[group.task] for group in known)
    if len(known) < len(groups):
        return "The paper has no result for some of these tasks."
    if shares[0] >= FULL:
        return "Runs have the paper's full length: final returns can be compared with the paper's."
    return (
        f"Runs have {_range([f'{100 * share:.2g}' for share in shares])} % of the paper's length: "
        "they show early learning, and neither confirm nor refute the paper's results."
    )


def _reached(group: Group) -> int:
    return min(int(one.iterations[-1]) for one in group.series)


def sort_tasks(envs: Iterable[str]) -> list[str]:
    """Sort tasks in the paper's order, then by name."""
    order = list(PAPER_ITERATIONS)
    place = {task: i for i, task in enumerate(order)}
    return sorted(set(envs), key=lambda env: (place.get(task_of(env), len(order)), env))


def _range(values: Sequence[str]) -> str:
    """Join the first and the last of sorted values, or return the only one."""
    if not values:
        return "none"
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
