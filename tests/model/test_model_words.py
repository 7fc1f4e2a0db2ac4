"""The front door: what it refuses, and what it says then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import OBS

import langevinrl as lrl
from langevinrl import Model, UserError

# One process: they share what is compiled.
pytestmark = pytest.mark.xdist_group("model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"iterations": 0}, "at least 1"),
        ({"iterations": 2.5}, "whole number"),
        ({"iterations": "many"}, "whole number"),
        ({"total_timesteps": float("inf")}, "whole number"),
        ({"iterations": 3, "total_timesteps": 3}, "not both"),
        ({"callback": lambda run: True}, "returning True stops the run"),
        ({"callback": lrl.callbacks.StopOnReturn}, "expected an object of a class"),
    ],
)
def test_invalid_arguments_of_learn_are_refused(
    arguments: dict[str, Any], message: str, here: Path
) -> None:
    with pytest.raises(UserError, match=message):
        Model("lql", "toys:timed").learn(**arguments)
    assert not list(here.iterdir())


def test_an_untrained_model_cannot_predict_evaluate_or_save(tmp_path: Path) -> None:
    fresh = Model("lql", "toys:timed")
    for call in (fresh.evaluate, lambda: fresh.predict(OBS), lambda: fresh.save(tmp_path)):
        with pytest.raises(UserError, match="not learned yet"):
            call()


@pytest.mark.parametrize(
    ("agent", "fields", "message"),
    [
        ("nclqll", {}, "did you mean nclql"),
        ("NC-LQL", {}, "did you mean nclql"),
        ("MlpPolicy", {}, "the agent's name comes first"),
        ("toys:nothing", {}, "cannot be loaded"),
        ("toys:wide", {}, "is not an agent"),
        ("nclql", {"batchsize": 3}, "did you mean batch_size"),
        ("nclql", {"sigma_maxx": 3}, "did you mean sigma_max"),
        ("nclql", {"spec": None}, "unknown field 'spec'"),
        ("nclql", {"w": 3}, "here it is inverse_temperature"),
        ("nclql", {"lr": 3}, "here it is learning_rate"),
        ("sac", {"lr": 3}, "critic_learning_rate or actor_learning_rate"),
        ("nclql", {"tau": 3}, "here it is target_rate"),
        ("nclql", {"learning_starts": 3}, "here it is warmup"),
        ("nclql", {"ent_coef": 3}, "here it is inverse_temperature"),
        ("sac", {"ent_coef": 3}, "here it is initial_alpha"),
        ("nclql", {"gradient_steps": 3}, "here it is updates_per_iteration"),
        ("nclql", {"total_timesteps": 3}, r"iterations.*learn\(total_timesteps=\)"),
        ("nclql", {"policy": "MlpPolicy"}, "no policy class"),
        ("nclql", {"verbose": 1}, "progress_bar=False"),
        ("nclql", {"device": "cpu"}, "JAX_PLATFORMS"),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(
    agent: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Model(agent, "toys:timed", **fields)
    assert "--" not in str(caught.value)  # no flags in Python


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gamma": 2.0}, "gamma is 2.0; expected"),
        ({"gamma": "high"}, "gamma is 'high'; expected float"),
        ({"iterations": 0}, "iterations is 0; expected"),
        ({"batch_size": 0}, "batch_size is 0; expected"),
        ({"hidden": []}, "expected at least one"),
        ({"preset": "quick"}, "unknown preset of lql 'quick'"),
        ({"warmup": 3}, "warmup=3 is less than one batch"),
    ],
)
def test_bad_values_are_refused_at_construction(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Model("lql", "toys:timed", **fields)


def test_repr_names_agent_environment_iterations_and_seeds(model: Model) -> None:
    fresh = Model("lql", "toys:timed", seeds=2)
    assert repr(fresh) == "Model('lql', 'toys:timed', iterations trained: 0, seeds: [0, 1])"
    assert "iterations trained: 8, seeds: [3, 4]" in repr(model)
