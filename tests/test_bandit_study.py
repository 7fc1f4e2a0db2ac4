"""The bandit study: its settings, its measures, every method's chains, and a small one in full."""

from __future__ import annotations

import csv
import dataclasses
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bandit_files import write_study

from langevinrl import bandit
from langevinrl.agents import REGISTER
from langevinrl.bandit_figures import draw_figures
from langevinrl.bandit_settings import COMMON, METHODS
from langevinrl.envs.bandit import soft_policy
from langevinrl.errors import UserError
from langevinrl.samplers.diffusion import denoise, make_schedule, reverse
from langevinrl.samplers.flow import integrate
from langevinrl.samplers.langevin import constant_plan, walk
from langevinrl.types import Array, Spec

CONFIG = bandit.BanditConfig(quick=True).settled()


def make(name: str) -> Any:
    return bandit.run_settings(CONFIG, name).make_agent(Spec(1, 2, 2.0))


def test_every_agent_is_studied() -> None:
    assert set(METHODS) == set(REGISTER) == set(CONFIG.methods)


@pytest.mark.parametrize("name", METHODS)
def test_each_is_trained_on_the_reward_alone_by_uniform_actions(name: str) -> None:
    run, agent = bandit.run_settings(CONFIG, name), make(name)
    assert run.random_actions and run.action_bound == 2.0
    assert agent.gamma == 0.0 and agent.spec.act_bound == 2.0


@pytest.mark.parametrize("name", METHODS)
def test_chains_can_be_followed_from_any_start(name: str) -> None:
    agent = dataclasses.replace(make(name), best_of=1)
    state = jax.eval_shape(agent.init, jax.random.key(0))
    start, key = jnp.zeros((7, 2)), jax.random.key(1)
    path = jax.eval_shape(partial(bandit.trace, agent), state, start, key)
    assert path.shape == (2 if name == "sac" else 11, 7, 2)


def test_a_followed_chain_ends_where_the_chain_ends() -> None:
    start, key = jnp.array([[0.5, -1.0], [1.5, 0.2]]), jax.random.key(2)
    schedule = make_schedule("vp", 3)

    def shrink(x: Array, t: Array) -> Array:
        return x * 0.3 + 0.01 * t

    def speed(x: Array, t: Array, rho: Array) -> Array:
        return -x * (1 + t + rho)

    chains = [
        partial(walk, shrink, start, constant_plan(3, 0.1), key),
        partial(reverse, shrink, schedule, start, key, 2.0),
        partial(denoise, shrink, schedule, start.shape, key, bound=2.0, start=start),
        partial(integrate, speed, start, 3),
    ]
    for chain in chains:
        path = chain(trace=True)
        assert path.shape == (4, 2, 2)
        np.testing.assert_array_equal(path[0], start)
        np.testing.assert_allclose(path[-1], chain(), atol=1e-6)


def test_an_unknown_method_is_named_with_its_neighbours() -> None:
    with pytest.raises(UserError, match="nclql"):
        bandit.BanditConfig(methods=("nclq",)).settled()


def test_draws_of_the_exact_law_are_nearest_to_it() -> None:
    actions = soft_policy(10.0).sample(5_000, np.random.default_rng(0))
    row = bandit.measure(actions, 10.0, 2.0)
    assert row["sum"] == pytest.approx(0.943, abs=0.02)
    assert row["reward_mean"] == pytest.approx(0.873, abs=0.02)
    assert row["total_variation"] < 0.08 and row["wasserstein"] < 0.06
    assert 8 < row["nearest_w"] < 12.5


def test_without_a_temperature_there_is_only_the_nearest_law() -> None:
    row = bandit.measure(np.zeros((10, 2)), None, 2.0)
    assert row["total_variation"] is None and row["nearest_total_variation"] is not None


def test_the_table_has_means_spreads_and_the_papers_row() -> None:
    base = {"method": "nclql", "reward_mean": 0.9, "w": 300.0, "total_variation": None}
    modes = {"top": 0.2, "right": 0.3, "bottom": 0.2, "left": 0.3}
    rows = [base | modes | {"seed": i, "sum": total} for i, total in enumerate((0.9, 1.0))]
    row = bandit._table_row("nclql", rows)
    assert row["sum"] == pytest.approx(0.95) and row["sum_spread"] == pytest.approx(0.05)
    assert row["total_variation"] is None
    assert row["paper_sum"] == 0.993 and row["paper_top"] == 0.240


def test_figures_come_from_files_alone(tmp_path: Path) -> None:
    out = write_study(tmp_path / "study")
    written = draw_figures(out)
    assert {path.stem for path in written} == {
        "reward", "values", "temperature", "reward_over_w", "comparison", "steps",
    }  # fmt: skip
    assert all(0 < path.stat().st_size < 1_000_000 for path in written)


def test_figures_and_page_do_not_need_jax() -> None:
    code = (
        "import sys, langevinrl.bandit_figures, langevinrl.bandit_page; print('jax' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_small_study_leaves_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMON, "hidden", (16, 16))
    few = dataclasses.replace(METHODS["nclql"], updates=200, batch_size=64)
    monkeypatch.setitem(METHODS, "nclql", few)
    asked = bandit.BanditConfig(
        out=tmp_path, methods=("nclql",), samples=300, sweep=(10.0,), workers=1, quick=True
    )
    assert bandit.study(asked) == tmp_path
    with (tmp_path / "table.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["method"] == "NC-LQL" and row["paper_sum"] == "0.993"
    with (tmp_path / "smoothing.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 10
    assert (tmp_path / "page.html").exists() and (tmp_path / "figures" / "steps.svg").exists()


@pytest.mark.slow
def test_the_quick_study_covers_every_method(tmp_path: Path) -> None:
    bandit.study(bandit.BanditConfig(out=tmp_path, quick=True))
    with (tmp_path / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(METHODS)
