"""Measures of samples with a known distribution."""

from __future__ import annotations

import numpy as np
import pytest

from langevinrl.studies.bandit.env import soft_policy
from langevinrl.studies.bandit.measure import measure
from langevinrl.studies.bandit.table import table_row


def test_samples_of_the_exact_policy_are_nearest_to_its_w() -> None:
    actions = soft_policy(10.0).sample(5_000, np.random.default_rng(0))
    row = measure(actions, 10.0, 2.0)
    assert row["sum"] == pytest.approx(0.943, abs=0.02)
    assert row["reward_mean"] == pytest.approx(0.873, abs=0.02)
    assert row["total_variation"] < 0.08
    assert 8 < row["nearest_w"] < 12.5


def test_without_w_only_the_nearest_distance_is_measured() -> None:
    row = measure(np.zeros((10, 2)), None, 2.0)
    assert row["total_variation"] is None and row["nearest_total_variation"] is not None


def test_table_row_has_means_deviations_and_the_papers_shares() -> None:
    base = {"method": "nclql", "reward_mean": 0.9, "w": 300.0, "total_variation": None}
    modes = {"top": 0.2, "right": 0.3, "bottom": 0.2, "left": 0.3}
    rows = [base | modes | {"seed": i, "sum": total} for i, total in enumerate((0.9, 1.0))]
    row = table_row("nclql", rows)
    assert row["sum"] == pytest.approx(0.95) and row["sum_spread"] == pytest.approx(
        0.0707, abs=1e-4
    )
    assert row["total_variation"] is None
    assert row["paper_sum"] == 0.993 and row["paper_top"] == 0.240
