"""Files under results/ and the Markdown blocks made of them.

A block is a function that returns Markdown.  `@block` registers it by its name, with hyphens: the
text of `full_length` stands in pages between `<!-- results: full-length -->` and `<!-- end -->`.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import nan
from pathlib import Path
from statistics import mean
from typing import Any, TypeAlias

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
LATE = 1.01  # an evaluation happens at the first step after its time

Block: TypeAlias = Callable[[], str]
Curve: TypeAlias = dict[int, float]  # mean return of an evaluation by iteration
BLOCKS: dict[str, Block] = {}


def block(function: Block) -> Block:
    """Register a function as a block of pages."""
    BLOCKS[function.__name__.replace("_", "-")] = function
    return function


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def whole(value: str | float) -> str:
    """Round to a whole number, and to one decimal below 50."""
    number = float(value)
    return f"{number:.1f}" if abs(number) < 50 and number != round(number) else f"{number:.0f}"


def joined(words: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def read_csv(name: str) -> list[dict[str, str]]:
    """Return the rows of a file under results/."""
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def read_json(name: str) -> Any:
    """Return the contents of a file under results/."""
    return json.loads((RESULTS / name).read_text())


def value_at(points: Iterable[tuple[float, float]], seconds: float) -> float:
    """Return the last value at or before a time, from times and values in order; NaN without."""
    return next((v for time, v in reversed(list(points)) if time <= seconds * LATE), nan)


def runs_in(name: str) -> list[str]:
    """Return the run folders directly below a folder of results."""
    found = sorted((RESULTS / name).glob("*/config.json"))
    return [str(path.parent.relative_to(RESULTS)) for path in found]


def curves(run: str) -> list[Curve]:
    """Return the mean of each evaluation, one curve per seed of a run."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_csv(f"{run}/evaluations.csv"):
        found[row["seed"]][int(row["iterations"])].append(float(row["return"]))
    return [{at: mean(values) for at, values in curve.items()} for curve in found.values()]


def curves_of(folder: str, agent: str, env: str) -> list[Curve]:
    """Return the curves of all seeds of an agent on a task."""
    found = []
    for run in runs_in(folder):
        config = read_json(f"{run}/config.json")
        if (config["agent"], config["env"]) == (agent, env):
            found += curves(run)
    return found
