"""Settings of every method of the study."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from langevinrl.errors import UserError
from langevinrl.studies.bandit.chains import trace
from langevinrl.studies.bandit.settings import TRAININGS, BanditConfig
from langevinrl.studies.bandit.training import run_settings
from langevinrl.studies.study import AGENTS
from langevinrl.types import Spec

CONFIG = BanditConfig(quick=True).resolved()


def test_all_methods_of_the_paper_are_studied() -> None:
    assert set(AGENTS) == set(TRAININGS) == set(CONFIG.methods)


@pytest.mark.parametrize("name", TRAININGS)
def test_each_method_learns_the_reward_and_has_a_chain_of_ten_steps(name: str) -> None:
    run = run_settings(CONFIG, name)
    agent: Any = run.make_agent(Spec(1, 2, 2.0))
    assert run.random_actions and run.action_bound == 2.0
    assert agent.gamma == 0.0 and agent.reward_scale == 1.0
    state = jax.eval_shape(agent.init, jax.random.key(0))
    path = jax.eval_shape(partial(trace, agent), state, jnp.zeros((7, 2)), jax.random.key(1))
    steps = {"sac": 1, "qsm": 50}.get(name, 10)
    assert path.shape == (steps + 1, 7, 2)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_workers_are_the_cpus_that_this_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(allowed)})
        assert BanditConfig().resolved().workers == 1
        assert BanditConfig(workers=3).resolved().workers == 3
    finally:
        os.sched_setaffinity(0, allowed)


def test_unknown_method_is_rejected() -> None:
    with pytest.raises(UserError, match="nclql"):
        BanditConfig(methods=("nclq",)).resolved()


def test_quick_study_has_one_seed_and_part_of_the_sweep() -> None:
    assert CONFIG.seeds == 1 and 0 < len(CONFIG.sweep) < len(BanditConfig().sweep)
