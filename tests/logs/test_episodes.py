"""Tests of episode statistics: returns, lengths, the window and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from langevinrl.logs.episodes import WINDOW, EpisodeStats


def step(stats: EpisodeStats, rewards: list[float], ended: list[bool]) -> None:
    stats.add(np.array([rewards]), np.array([ended]))


def test_means_are_over_finished_episodes() -> None:
    stats = EpisodeStats((1, 2))
    step(stats, [1.0, 10.0], [False, False])
    assert stats.means(0) == {}
    step(stats, [2.0, 20.0], [True, False])
    assert stats.means(0) == {"rollout/ep_rew_mean": 3.0, "rollout/ep_len_mean": 2.0}
    step(stats, [5.0, 30.0], [False, True])
    assert stats.means(0) == {"rollout/ep_rew_mean": 31.5, "rollout/ep_len_mean": 2.5}


def test_the_mean_is_over_the_last_hundred_of_each_seed() -> None:
    stats = EpisodeStats((2, 1))
    for episode in range(WINDOW + 50):
        stats.add(np.array([[float(episode)], [-1.0]]), np.ones((2, 1), bool))
    assert stats.means(0)["rollout/ep_rew_mean"] == np.mean(np.arange(50, 150))
    assert stats.means(1)["rollout/ep_rew_mean"] == -1.0


@pytest.mark.parametrize(("exact", "unfinished"), [(True, (101.0, 2)), (False, (1.0, 1))])
def test_unfinished_episodes_are_restored_unless_environments_restart(
    exact: bool, unfinished: tuple[float, int]
) -> None:
    stats, again = EpisodeStats((1, 2)), EpisodeStats((1, 2))
    step(stats, [5.0, 100.0], [True, False])
    again.restore(json.loads(json.dumps(stats.metadata())), exact)
    step(again, [1.0, 1.0], [True, True])
    assert list(again.recent[0]) == [(5.0, 1), (1.0, 1), unfinished]


def test_a_run_logs_episode_statistics_of_each_seed(tiny_run: Path) -> None:
    """The task is truncated after seven steps and pays 1 + an action in [-2, 2]."""
    rows = [json.loads(line) for line in (tiny_run / "metrics.jsonl").read_text().splitlines()]
    assert {row["rollout/ep_len_mean"] for row in rows} == {7.0}
    returns = {row["seed"]: row["rollout/ep_rew_mean"] for row in rows}
    assert all(abs(value) < 21 for value in returns.values())
    assert returns[3] != returns[4]
    assert returns[3] == pytest.approx(7.0, abs=2.0)  # mostly of the random warm-up
