"""Defaults of every method, compared with the paper's table and the released code."""

from __future__ import annotations

import jax
import pytest

from langevinrl.learner import count_parameters
from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig
from langevinrl.studies.study import AGENTS
from langevinrl.types import Spec

HUMANOID = Spec(376, 17)
# Online critics and policy, without target copies, temperatures and optimisers.
NUM_PARAMETERS = {
    "nclql": 475_746, "lql": 465_410, "sac": 702_244, "qsm": 702_227, "dipo": 710_419,
    "qvpo": 707_395, "dacer": 707_909, "mfp": 702_739, "sdac": 707_395, "dpmd": 707_395,
}  # fmt: skip

DEFAULTS = {
    "lql": {
        "inverse_temperature": 500.0, "num_steps": 20, "step_size": 1e-4, "learning_rate": 1e-4,
        "activation": "mish", "best_of": 1, "start": "zero", "clip": True, "normalise": True,
    },
    "nclql": {
        "inverse_temperature": 500.0, "steps_per_level": 2, "num_levels": 10, "step_size": 1e-4,
        "sigma_max": 0.1, "sigma_min": 1e-3, "learning_rate": 1e-4, "activation": "mish",
        "best_of": 1, "start": "uniform", "clip": True, "normalise": True, "anchor": "mean",
        "optimisation": "two_steps", "smooth_clean_level": False, "embedding_size": 16,
    },
    "sac": {
        "activation": "gelu", "critic_learning_rate": 3e-4, "actor_learning_rate": 3e-4,
        "temperature_learning_rate": 3e-4, "target_entropy_scale": 1.0, "best_of": 1,
        "squash_correction": True,
    },
    "qsm": {
        "activation": "relu", "num_steps": 20, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "final_actor_learning_rate": 3e-5, "best_of": 32,
        "sampler": "langevin",
    },
    "dipo": {
        "activation": "mish", "num_steps": 100, "num_ascent_steps": 30, "ascent_rate": 0.03,
        "ascent_max_norm": 0.16, "max_norm": 2.0, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "best_of": 1, "schedule": "linear", "schedule_scale": 0.3,
        "start_std": 0.5, "backup_policy": "target", "actor_delay": 2,
    },
    "qvpo": {
        "activation": "mish", "num_steps": 20, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "final_actor_learning_rate": 5e-5, "best_of": 32,
        "schedule": "linear", "schedule_scale": 0.3, "start_std": 0.5, "weights": "cutoff",
        "weight_gradient": False, "repeat_critic_step": False, "shuffle": "none",
        "entropy_weight": 0.02, "final_entropy_weight": 0.002, "num_uniform": 10, "delay": 2,
    },
    "dacer": {
        "activation": "mish", "num_steps": 20, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "final_actor_learning_rate": 3e-5, "best_of": 1,
        "temperature_learning_rate": 3e-2, "temperature_delay": 10_000, "num_gaussians": 3,
        "num_entropy_actions": 200, "target_entropy_scale": 0.9, "noise_scale": 0.15,
        "initial_alpha": 3.0, "schedule": "linear", "schedule_scale": 0.3, "delay": 2,
    },
    "mfp": {
        "activation": "gelu", "flow_steps": 20, "critic_learning_rate": 1e-4,
        "actor_learning_rate": 1e-4, "best_of": 32, "imitate": "best", "constraint_weight": 1.0,
    },
    "sdac": {
        "activation": "mish", "num_steps": 20, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "final_actor_learning_rate": 3e-5, "best_of": 32,
        "temperature_learning_rate": 7e-3, "temperature_delay": 250, "noise_scale": 0.1,
        "target_entropy_scale": 0.9, "initial_alpha": 5.0, "num_noises": 64, "schedule": "linear",
        "schedule_scale": 0.8, "start_std": 0.5, "clip_noise": False, "delay": 2,
    },
    "dpmd": {
        "activation": "mish", "num_steps": 20, "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4, "final_actor_learning_rate": 3e-5, "best_of": 32,
        "temperature_learning_rate": 7e-3, "temperature_delay": 250, "noise_scale": 0.1,
        "target_entropy_scale": 0.9, "initial_alpha": 5.0, "schedule": "linear",
        "schedule_scale": 0.8, "start_std": 0.5, "clip_noise": False, "delay": 2,
        "weighting": "coded", "repeat_critic_step": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_the_papers(name: str) -> None:
    agent = METHODS[name].load()(HUMANOID)
    shared = {"gamma": 0.99, "target_rate": 0.005, "reward_scale": 0.2, "hidden": (256, 256, 256)}
    for field, value in (shared | DEFAULTS[name]).items():
        assert getattr(agent, field) == value, field


@pytest.mark.parametrize("name", NUM_PARAMETERS)
def test_parameter_counts_on_humanoid(name: str) -> None:
    agent = METHODS[name].load()(HUMANOID)
    state = jax.eval_shape(agent.init, jax.random.key(0))  # type: ignore[attr-defined]
    assert count_parameters(state) == NUM_PARAMETERS[name]


def test_every_method_of_the_paper_is_checked() -> None:
    assert set(DEFAULTS) == set(NUM_PARAMETERS) == set(AGENTS) == set(METHODS) - {"nclql-auto"}


def test_run_defaults_are_the_papers() -> None:
    run = RunConfig("Hopper-v4", preset="paper").resolved()
    assert (run.num_envs, run.warmup, run.batch_size, run.capacity) == (5, 30_000, 256, 1_000_000)
    assert (run.iterations, run.eval_every, run.eval_episodes) == (1_000_000, 25_000, 20)
    assert RunConfig("Reacher-v4").resolved().iterations == 200_000
    assert len(PAPER_ITERATIONS) == 9
