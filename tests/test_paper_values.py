"""Every default against the paper's table and the released code."""

from __future__ import annotations

import jax
import pytest

from langevinrl.agents import REGISTER
from langevinrl.config import PAPER_ITERATIONS, RunConfig
from langevinrl.learner import count_parameters
from langevinrl.types import Spec

HUMANOID = Spec(376, 17)

DEFAULTS = {
    "lql": {
        "inverse_temperature": 500.0, "num_steps": 20, "step_size": 1e-4, "learning_rate": 1e-4,
        "activation": "mish", "best_of": 1, "start": "uniform", "clip": True, "normalise": True,
    },
    "nclql": {
        "inverse_temperature": 500.0, "steps_per_level": 2, "num_levels": 10, "step_size": 1e-4,
        "sigma_max": 0.1, "sigma_min": 1e-3, "learning_rate": 1e-4, "activation": "mish",
        "best_of": 1, "start": "uniform", "clip": True, "normalise": True, "anchor": "mean",
        "optimisation": "two_steps", "smooth_clean_level": False, "embedding_size": 16,
    },
}  # fmt: skip

PARAMETERS = {"lql": 465_410, "nclql": 475_746}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_the_papers(name: str) -> None:
    agent = REGISTER[name](HUMANOID)
    shared = {"gamma": 0.99, "target_rate": 0.005, "reward_scale": 0.2, "hidden": (256, 256, 256)}
    for field, value in (shared | DEFAULTS[name]).items():
        assert getattr(agent, field) == value, field


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_on_humanoid(name: str) -> None:
    agent = REGISTER[name](HUMANOID)
    state = jax.eval_shape(agent.init, jax.random.key(0))  # type: ignore[attr-defined]
    assert count_parameters(state) == PARAMETERS[name]


def test_the_protocol_is_the_papers() -> None:
    run = RunConfig("Hopper-v4").resolved()
    assert (run.num_envs, run.warmup, run.batch_size, run.capacity) == (5, 30_000, 256, 1_000_000)
    assert (run.iterations, run.eval_every, run.eval_episodes) == (1_000_000, 25_000, 20)
    assert RunConfig("Reacher-v4").resolved().iterations == 200_000
    assert len(PAPER_ITERATIONS) == 9
