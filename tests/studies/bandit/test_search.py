"""The search on exact values: what it reports, and that its disturbances are as large as said."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.studies.bandit import search
from langevinrl.studies.bandit.env import near_high_modes
from langevinrl.studies.bandit.settings import SEARCH, TRAININGS, BanditConfig


def test_a_disturbance_has_the_size_asked_for() -> None:
    points = jax.random.uniform(jax.random.key(0), (2_000, 2), minval=-2.0, maxval=2.0)
    sizes = [
        jnp.square(search.disturbance(jax.random.key(i), 0.1)(points)).mean() for i in range(40)
    ]
    assert float(np.mean(sizes)) ** 0.5 == pytest.approx(0.1, rel=0.15)
    assert float(jnp.abs(search.disturbance(jax.random.key(0), 0.0)(points)).max()) == 0.0


@pytest.mark.parametrize("name", ["nclql", "lql"])
def test_the_chosen_settings_are_among_those_searched(name: str) -> None:
    chosen = TRAININGS[name].hyperparameters
    assert all(chosen[field] in SEARCH[field] for field in search.FIELDS if field in chosen)


def test_the_chosen_chain_reaches_all_high_modes_on_exact_values() -> None:
    chosen = TRAININGS["nclql"].hyperparameters
    setting = [chosen[field] for field in search.FIELDS]
    actions = search.annealed(1_000, 2.0, *setting, jax.random.key(0), 0.0)
    shares = near_high_modes(np.asarray(actions)).mean(axis=0)
    assert shares.sum() > 0.99 and np.abs(shares - 0.25).max() < 0.05


def test_a_quick_search_tries_one_setting_of_each() -> None:
    rows = list(search.search_chains(BanditConfig(quick=True, samples=200).resolved()))
    assert [row["method"] for row in rows] == ["nclql", "lql"]
    assert rows[1]["sigma_max"] is None and rows[0]["disturbed_unequal"] > 0
