"""A run whose agent scales observations: its statistics are saved and go on exactly."""

from __future__ import annotations

import jax
import numpy as np

from langevinrl.runs.checkpoint import Checkpoint
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run

CUT, END = 3, 6


def config() -> RunConfig:
    hyperparameters = {"hidden": (4, 4), "num_steps": 2, "obs_norm": True, "critic_norm": "layer"}
    return RunConfig(
        "toys:golden", agent="lql", hyperparameters=hyperparameters, iterations=END, seeds=2,
        num_envs=3, warmup=48, capacity=50, batch_size=16, eval_every=END, out="unused",
    ).resolved()  # fmt: skip


def copied(saved: Checkpoint) -> Checkpoint:
    """Arrays of its own, as a file has: the run goes on writing into its replay."""
    groups = saved.arrays.items()
    arrays = {group: {name: np.copy(a) for name, a in named.items()} for group, named in groups}
    return Checkpoint(arrays, saved.metadata)


def test_a_run_taken_up_again_scales_as_if_it_had_not_stopped() -> None:
    with Run(config()) as whole:
        whole.until(CUT)
        saved = copied(whole.checkpoint({}))
        at_cut = np.asarray(whole.state.scales.obs.mean)
        whole.until(END)
    with Run(config(), start=saved) as resumed:
        np.testing.assert_array_equal(resumed.state.scales.obs.mean, at_cut)
        resumed.until(END)
    jax.tree.map(np.testing.assert_array_equal, whole.state, resumed.state)
    assert (np.asarray(whole.state.scales.obs.updates) >= END).all()
    assert not np.array_equal(whole.state.scales.obs.mean, at_cut)
