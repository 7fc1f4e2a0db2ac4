"""Presets: data that fits its agents, from Python and from the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from langevinrl.agents.presets import PRESETS
from langevinrl.cli.train import read
from langevinrl.errors import UserError
from langevinrl.model import Model
from langevinrl.runs.config import RunConfig


@pytest.mark.parametrize("agent", PRESETS)
def test_a_preset_sets_fields_of_its_agent_and_only_those(agent: str) -> None:
    paper = RunConfig("toys:wide", agent=agent, iterations=1).resolved().hyperparameters
    for name, fields in PRESETS[agent].items():
        config = RunConfig("toys:wide", agent=agent, iterations=1, preset=name)
        found = config.resolved().hyperparameters
        changed = {field for field in found if found[field] != paper[field]}
        assert changed == set(fields) and {k: found[k] for k in fields} == fields


def test_flags_go_over_the_preset_and_both_are_recorded(tmp_path: Path) -> None:
    words = "--env toys:wide --iterations 3 --preset fast --num-levels 4".split()
    config = read("nclql", words).resolved()
    assert config.preset == "fast"
    assert config.hyperparameters["num_levels"] == 4
    assert config.hyperparameters["learning_rate"] == 3e-4
    config.write(tmp_path / "config.json")
    assert RunConfig.read(tmp_path / "config.json").resolved() == config
    assert read("nclql", ["--env", "toys:wide", "--preset=fast"]).hyperparameters["num_levels"] == 5


def test_a_model_takes_a_preset_and_an_unknown_one_is_refused() -> None:
    model = Model("sac", "toys:wide", preset="fast", iterations=1)
    assert model.config.resolved().hyperparameters["initial_alpha"] == 1.0
    with pytest.raises(UserError, match=r"unknown preset of qsm 'fast'.*paper"):
        RunConfig("toys:wide", agent="qsm", iterations=1, preset="fast").resolved()


def test_a_configuration_of_before_there_were_presets_is_the_papers() -> None:
    fields = {f.name: f.default for f in dataclasses.fields(RunConfig)}
    assert fields["preset"] == "paper"
