"""Every method's settings are a run the shared loop accepts."""

from __future__ import annotations

import pytest

from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.studies.bandit.settings import TRAININGS, BanditConfig
from langevinrl.studies.bandit.training import run_settings
from langevinrl.types import Spec

CONFIG = BanditConfig(quick=True).resolved()


def test_every_agent_is_studied() -> None:
    assert set(METHODS) == set(TRAININGS) == set(CONFIG.methods)


@pytest.mark.parametrize("name", METHODS)
def test_each_is_trained_on_the_reward_alone_by_uniform_actions(name: str) -> None:
    run = run_settings(CONFIG, name)
    agent = run.make_agent(Spec(1, 2, 2.0))
    assert run.random_actions and run.action_bound == 2.0
    assert agent.gamma == 0.0 and agent.reward_scale == 1.0  # type: ignore[attr-defined]


def test_an_unknown_method_is_named_with_its_neighbours() -> None:
    with pytest.raises(UserError, match="nclql"):
        BanditConfig(methods=("nclq",)).resolved()


def test_a_quick_study_keeps_to_a_part_of_the_sweep() -> None:
    assert CONFIG.seeds == 1 and 0 < len(CONFIG.sweep) < len(BanditConfig().sweep)
