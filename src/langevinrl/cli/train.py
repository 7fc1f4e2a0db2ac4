"""langevinrl train AGENT|config.json --env ID [any field]"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import tyro

from langevinrl.agents import Common
from langevinrl.cli import agents
from langevinrl.cli.forms import parse, show
from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig, agent_class, agent_fields
from langevinrl.storage.trust import importing_names, require_trusted
from langevinrl.types import Spec


@dataclass(frozen=True)
class Train:
    """A run's fields and an agent's, side by side."""

    run: RunConfig
    agent: Common  # filled with an agent of one class, whose own fields are then shown
    overwrite: bool = False  # give up the run that lies in the folder
    # follow names of someone's own that config.json holds, which imports them
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    if not words or words[0].startswith("-"):
        print("usage: langevinrl train AGENT|config.json --env ID [--iterations N] [any field]\n")
        agents.main([])
        print("\nAll fields of one: langevinrl train AGENT --help")
        raise SystemExit(0 if words[:1] in (["-h"], ["--help"]) else 2)
    config, overwrite = read_form(words[0], words[1:])
    from langevinrl.runs.train import train

    show(train(config, overwrite=overwrite))


def _read_file(path: Path, words: list[str]) -> RunConfig:
    """A configuration whose names may be followed; what the user names beside it always may.

    Looked up in the words as they are, for the flags of an agent are known when it is imported.
    """
    config = RunConfig.parse(path)
    named = any(word == "--env" or word.startswith("--env=") for word in words)
    names = importing_names(config.agent, "", {}) if named else config.imported()
    require_trusted(path, names, "--trust" in words)
    return config


def _preset(words: list[str]) -> str | None:
    """The preset asked for, which decides the defaults that all other flags stand on."""
    for word, following in pairwise([*words, ""]):
        if word == "--preset":
            return following
        if word.startswith("--preset="):
            return word.partition("=")[2]
    return None


def read(what: str, words: list[str]) -> RunConfig:
    """The run that an agent's name or a configuration file means, with the flags beside it."""
    return read_form(what, words)[0]


def read_form(what: str, words: list[str]) -> tuple[RunConfig, bool]:
    """That run, and whether it may overwrite another."""
    if what.endswith(".json"):
        run = dataclasses.replace(_read_file(Path(what), words), out=None)
        if _preset(words) is not None:
            raise UserError(f"{what} sets every field, so --preset would have no effect")
    else:
        agent_class(what)
        run = RunConfig(env=tyro.MISSING, agent=what, preset=_preset(words) or "paper")
    run = run.with_defaults()  # which --help then shows, and flags override
    # The sizes come from the environment later; these only let the agent be built and checked.
    agent = run.make_agent(Spec(1, 1))
    defaults = Train(run, cast(Common, agent))
    asked = parse(Train, words, f"train {what}", defaults)
    fields = agent_fields(asked.agent)
    config = dataclasses.replace(asked.run, agent=run.agent, hyperparameters=fields)
    return config, asked.overwrite
