"""langevinrl train AGENT|config.json --env ID [any field]"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import tyro

from langevinrl.agents import Common
from langevinrl.cli import agents
from langevinrl.cli.forms import parse, show
from langevinrl.runs.config import RunConfig, agent_class, agent_fields
from langevinrl.types import Spec


@dataclass(frozen=True)
class Train:
    """A run's fields and an agent's, side by side."""

    run: RunConfig
    agent: Common  # filled with an agent of one class, whose own fields are then shown
    overwrite: bool = False  # give up the run that lies in the folder


def main(words: list[str]) -> None:
    if not words or words[0].startswith("-"):
        print("usage: langevinrl train AGENT|config.json --env ID [--iterations N] [any field]\n")
        agents.main([])
        print("\nAll fields of one: langevinrl train AGENT --help")
        raise SystemExit(0 if words[:1] in (["-h"], ["--help"]) else 2)
    config, overwrite = read_form(words[0], words[1:])
    from langevinrl.runs.train import train

    show(train(config, overwrite=overwrite))


def read(what: str, words: list[str]) -> RunConfig:
    """The run that an agent's name or a configuration file means, with the flags beside it."""
    return read_form(what, words)[0]


def read_form(what: str, words: list[str]) -> tuple[RunConfig, bool]:
    """That run, and whether it may overwrite another."""
    if what.endswith(".json"):
        run = dataclasses.replace(RunConfig.read(Path(what)), out=None)
    else:
        agent_class(what)
        run = RunConfig(env=tyro.MISSING, agent=what, preset=find_preset(words))
    # The sizes come from the environment later; these only let the agent be built and checked.
    agent = run.make_agent(Spec(1, 1))
    defaults = Train(run, cast(Common, agent))
    asked = parse(Train, words, f"train {what}", defaults)
    fields = agent_fields(asked.agent)
    config = dataclasses.replace(asked.run, agent=run.agent, hyperparameters=fields)
    return config, asked.overwrite


def find_preset(words: list[str]) -> str:
    """The preset among the words, read first: the agent's other fields start from it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name == "--preset":
            return value or following
    return "paper"
