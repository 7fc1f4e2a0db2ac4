"""Time estimates from a few iterations of each kind of run."""

from __future__ import annotations

import dataclasses

import pytest
from sweeping import TINY, tiny_configs

from langevinrl.errors import UserError
from langevinrl.runs.presets import longest_episode
from langevinrl.sweeps.estimate import Cost, estimate, kind_of, seconds_of
from langevinrl.sweeps.grid import make_config
from langevinrl.sweeps.slots import find_slots


def test_time_of_a_run_counts_start_iterations_and_evaluations() -> None:
    config = make_config({**TINY, "iterations": 100, "eval_every": 25}).resolved()
    cost = Cost(start=10.0, iteration=0.5, action=0.01)
    assert longest_episode("Pendulum-v1") == 200
    assert seconds_of(config, cost) == 10.0 + 100 * 0.5 + 4 * 200 * 0.01


def test_runs_that_differ_in_a_float_are_of_one_kind() -> None:
    one, other = tiny_configs(1)
    longer = make_config({**TINY, "num_steps": 4}).resolved()
    assert kind_of(one) == kind_of(other) == kind_of(dataclasses.replace(one, seed=7))
    assert kind_of(one) != kind_of(longer)


def test_each_kind_of_run_is_measured_once() -> None:
    configs = [*tiny_configs(1), *tiny_configs(1, num_steps=4)]
    seconds, costs = estimate(configs, find_slots(4))
    assert len(costs) == 2 and all(min(cost) > 0 for cost in costs.values())
    each = [seconds_of(config, costs[kind_of(config)]) for config in configs]
    assert seconds == pytest.approx(max(max(each), sum(each) / len(find_slots(4))))


def test_run_that_does_not_start_is_named() -> None:
    config = make_config({**TINY, "env": "Pendulum-v9"}).resolved()
    with pytest.raises(UserError, match="lql on Pendulum-v9 does not start"):
        estimate([config], find_slots(1))
