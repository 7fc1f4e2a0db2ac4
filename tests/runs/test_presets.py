"""Presets: values of an agent's fields under a name, beside the agent."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from langevinrl import Model
from langevinrl.cli.train import read
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig, agent_class, agent_fields
from langevinrl.sweeps.grid import job_id
from langevinrl.types import Spec

TASK = ["--env", "Pendulum-v1", "--iterations", "9"]


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_is_an_agent_that_differs_from_the_papers(name: str) -> None:
    kind = agent_class(name)
    for preset, values in kind.presets.items():
        agent = RunConfig("Pendulum-v1", name, preset=preset).make_agent(Spec(3, 1))
        assert agent_fields(agent) == agent_fields(kind(Spec(3, 1))) | values
        assert agent != kind(Spec(3, 1))


def test_the_ones_promised_are_there_and_the_default_is_the_papers() -> None:
    assert [name for name in METHODS if "fast" in agent_class(name).presets] == [
        "nclql", "lql", "sac",
    ]  # fmt: skip
    assert RunConfig("Pendulum-v1", iterations=9).resolved().preset == "paper"


def test_flags_stand_on_the_preset() -> None:
    config = read("nclql", ["--preset", "fast", "--num-levels", "7", *TASK])
    assert config.preset == "fast" and config.hyperparameters["num_levels"] == 7
    assert config.hyperparameters["learning_rate"] == 3e-4
    assert read("nclql", ["--preset=fast", *TASK]).hyperparameters["num_levels"] == 5
    assert read("nclql", TASK).hyperparameters["num_levels"] == 10


def test_fields_of_a_model_stand_on_it_too() -> None:
    model = Model("nclql", "Pendulum-v1", preset="fast", learning_rate=1e-3, iterations=9)
    fields = model.config.resolved().hyperparameters
    assert (fields["num_levels"], fields["learning_rate"]) == (5, 1e-3)


def test_a_run_is_what_its_fields_say_whatever_the_preset_was_called(tmp_path: Path) -> None:
    fast = RunConfig("Pendulum-v1", preset="fast", iterations=9).resolved()
    fast.write(tmp_path / "config.json")
    again = RunConfig.read(tmp_path / "config.json")
    assert again == fast and again.preset == "fast"
    spelled = dataclasses.replace(fast, preset="paper")
    assert spelled.make_agent(Spec(3, 1)) == fast.make_agent(Spec(3, 1))
    assert job_id(spelled) == job_id(fast)
    with pytest.raises(UserError, match="spells out every field"):
        read(str(tmp_path / "config.json"), ["--preset", "paper"])


def test_a_preset_that_is_not_there_is_named_with_those_that_are() -> None:
    for agent, told in (("nclql", "did you mean fast"), ("qsm", "Known: paper")):
        with pytest.raises(UserError, match=rf"unknown preset of {agent} 'fsat'.*{told}"):
            RunConfig("Pendulum-v1", agent, preset="fsat", iterations=9).resolved()
