"""langevinrl train AGENT|config.json --env ID [any field]"""

from __future__ import annotations

import dataclasses
import os
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
from langevinrl.types import Spec


@dataclass(frozen=True)
class Train:
    """Fields of a run and of an agent, together."""

    run: RunConfig
    agent: Common  # an agent, whose own fields become flags
    overwrite: bool = False  # delete the run in the folder
    # import custom agents and environments that config.json names
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    if not words or words[0].startswith("-"):
        print("usage: langevinrl train AGENT|config.json --env ID [--iterations N] [any field]\n")
        agents.main([])
        print("\nAll fields of one: langevinrl train AGENT --help")
        raise SystemExit(0 if words[:1] in (["-h"], ["--help"]) else 2)
    config, overwrite = read(words[0], words[1:])
    from langevinrl.runs.train import train

    show(train(config, overwrite=overwrite))


def _read_file(path: Path, words: list[str]) -> RunConfig:
    """Read a configuration whose names may be imported; names given as flags always may.

    The flags are searched as text, because they can be parsed only after the agent is imported.
    """
    named = any(word.partition("=")[0] == "--env" for word in words)
    real = Path(os.path.realpath(path))  # the user's own file may be a link
    return RunConfig.read(real, trust="--trust" in words, import_env=not named)


def _preset(words: list[str]) -> str | None:
    """Return the preset given as a flag; it determines the defaults of all other flags."""
    for word, following in pairwise([*words, ""]):
        flag, equals, value = word.partition("=")
        if flag == "--preset":
            return value if equals else following
    return None


def read(what: str, words: list[str]) -> tuple[RunConfig, bool]:
    """Return the run that an agent's name or a configuration file and flags describe.

    The second value is whether it may overwrite another.
    """
    if what.endswith(".json"):
        run = dataclasses.replace(_read_file(Path(what), words), out=None)
        if _preset(words) is not None:
            raise UserError(f"{what} sets every field, so --preset would have no effect")
    else:
        agent_class(what)
        run = RunConfig(env=tyro.MISSING, agent=what, preset=_preset(words))
    run = run.with_defaults()  # which --help then shows, and flags override
    # The real sizes come from the environment later; these allow the agent to be validated now.
    agent = run.make_agent(Spec(1, 1))
    defaults = Train(run, cast(Common, agent))
    asked = parse(Train, words, f"train {what}", defaults)
    fields = agent_fields(asked.agent)
    config = dataclasses.replace(asked.run, agent=run.agent, hyperparameters=fields)
    return config, asked.overwrite
