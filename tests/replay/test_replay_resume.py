"""The replay buffer of a resumed run."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from langevinrl.replay.buffer import Replay
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.storage.checkpoint import CheckpointData
from langevinrl.storage.folder import REPLAY

CUT, END, CAPACITY = 4, 9, 50  # iterations; the buffer has wrapped before the cut


def config(env: str, **fields: Any) -> RunConfig:
    hyperparameters = {"hidden": (4, 4), "num_steps": 2}
    return RunConfig(
        env, agent="lql", hyperparameters=hyperparameters, iterations=END, seeds=2, num_envs=3,
        warmup=48, capacity=CAPACITY, batch_size=16, eval_every=END, out="unused", **fields,
    ).resolved()  # fmt: skip


def all_next_obs(replay: Replay) -> np.ndarray:
    return replay.next_obs(np.tile(np.arange(replay.size), (2, 1)))


def test_a_run_with_n_step_returns_and_reward_norm_resumes_exactly() -> None:
    with Run(config("toys:golden", n_step=3, reward_norm=True)) as whole:
        whole.until(CUT)
        saved = whole.checkpoint({})
        copies = {part: {k: a.copy() for k, a in own.items()} for part, own in saved.arrays.items()}
        whole.until(END)
    with Run(
        config("toys:golden", n_step=3, reward_norm=True), start=saved._replace(arrays=copies)
    ) as resumed:
        resumed.until(END)
    with Run(config("toys:golden")) as one_step:
        one_step.until(END)
    jax.tree.map(np.testing.assert_array_equal, whole.state, resumed.state)
    assert whole.replay.metadata() == resumed.replay.metadata()
    leaves = zip(jax.tree.leaves(whole.state), jax.tree.leaves(one_step.state), strict=True)
    assert any((np.asarray(a) != np.asarray(b)).any() for a, b in leaves)


def test_restarted_environments_do_not_change_stored_next_observations() -> None:
    with Run(config("toys:unsaved")) as run:
        run.until(CUT)
        saved = run.checkpoint({})
        arrays = {name: array.copy() for name, array in saved.arrays[REPLAY].items()}
        rows, before = run.replay._newest_rows(), all_next_obs(run.replay)
    start = CheckpointData(saved.arrays | {REPLAY: arrays}, saved.metadata)
    with Run(config("toys:unsaved"), start=start) as resumed:
        assert not resumed.exact
        for _ in range(3):
            resumed.advance()
    np.testing.assert_array_equal(all_next_obs(resumed.replay)[:, rows], before[:, rows])
    following = (rows + 3) % CAPACITY
    assert (resumed.replay.rings["obs"][:, following] != before[:, rows]).any(axis=-1).all()
