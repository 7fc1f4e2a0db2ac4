"""langevinrl bench [AGENT...]"""

from __future__ import annotations

from langevinrl.bench import Bench, measure
from langevinrl.cli.forms import parse


def main(words: list[str]) -> None:
    measure(parse(Bench, words, "bench"))
