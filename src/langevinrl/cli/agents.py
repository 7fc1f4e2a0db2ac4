"""langevinrl agents"""

from __future__ import annotations

from dataclasses import dataclass

from langevinrl.cli.forms import parse
from langevinrl.registry import METHODS


@dataclass(frozen=True)
class Agents:
    """List the agents."""


def main(words: list[str]) -> None:
    parse(Agents, words, "agents")
    for name, method in METHODS.items():
        print(f"{name:10} {method.summary}")
