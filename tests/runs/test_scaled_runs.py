"""Exact resume of a run whose agent scales observations and rewards."""

from __future__ import annotations

import jax
import numpy as np

from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.storage.checkpoint import CheckpointData

CUT, END = 3, 6


def config() -> RunConfig:
    hyperparameters = {"hidden": (4, 4), "num_levels": 2, "steps_per_level": 1, "spread": 0.2}
    scaled = {"obs_norm": True, "reward_norm": True, "critic_norm": "layer"}
    return RunConfig(
        "toys:golden", hyperparameters=hyperparameters | scaled, iterations=END, seeds=2,
        num_envs=3, warmup=48, capacity=50, batch_size=16, eval_every=END, out="unused",
    ).resolved()  # fmt: skip


def copied(saved: CheckpointData) -> CheckpointData:
    """Copy the arrays, because the run continues to write into its replay buffer."""
    groups = saved.arrays.items()
    arrays = {group: {name: np.copy(a) for name, a in named.items()} for group, named in groups}
    return CheckpointData(arrays, saved.metadata)


def test_a_resumed_run_continues_its_scaling_statistics() -> None:
    with Run(config()) as whole:
        whole.until(CUT)
        saved = copied(whole.checkpoint({}))
        at_cut = jax.tree.map(np.array, whole.state.scales)
        whole.until(END)
    with Run(config(), start=saved) as resumed:
        jax.tree.map(np.testing.assert_array_equal, resumed.state.scales, at_cut)
        resumed.until(END)
    jax.tree.map(np.testing.assert_array_equal, whole.state, resumed.state)
    assert (np.asarray(whole.state.scales.obs.updates) >= END).all()
    assert (np.asarray(whole.state.scales.reward.batches) >= END).all()
    assert not np.array_equal(whole.state.scales.obs.mean, at_cut.obs.mean)
    assert not np.array_equal(whole.state.scales.reward.square, at_cut.reward.square)
