"""Several updates per iteration, and reuse of compiled functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from langevinrl.runs import compiled
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update


@dataclass(frozen=True)
class Counter:
    """An agent whose update adds one to a column of every row."""

    spec: Spec
    columns: ClassVar[dict[str, str]] = {"count": "action"}

    def init(self, key: Key) -> PyTree:
        return jnp.zeros(())

    def noise(self, key: Key, num: int) -> PyTree:
        return jnp.zeros((num, 1))

    def policy(self, state: PyTree, obs: Array, noise: PyTree, *, explore: bool) -> Array:
        return state + noise

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        count = batch.extra["count"] + 1
        return Update(state + 1, {"seen": batch.extra["count"].sum()}, {"count": count})

    def trace(self, state: PyTree, obs: Array, noise: PyTree) -> Array:
        return noise[None]

    def policy_weight(self, state: PyTree) -> None:
        return None


def test_an_update_sees_the_column_rewritten_by_the_one_before() -> None:
    """DIPO improves a row three times if three updates of an iteration sample it."""
    agent, rows = Counter(Spec(1, 1)), [[7, 3], [3, 5], [3, 3]]
    row = np.array(rows, np.int32).reshape(1, 6)
    column, flat = jnp.zeros((1, 6, 1)), jnp.zeros((1, 6))
    batch = Batch(column, column, flat, flat, column, jnp.asarray(row), {"count": column})
    seeds = compiled.seed_keys([0])
    update = compiled.compile_agent(agent, num_envs=1, num_updates=3).update
    state, metrics, rewrite = update(seeds, 0, jnp.zeros(1), batch)
    assert int(state[0]) == 3
    assert float(metrics["seen"][0]) == 4.0  # both rows were counted twice before
    assert rewrite is not None
    np.testing.assert_array_equal(rewrite["count"][0, :, 0], [1, 1, 2, 1, 3, 3])
    table = np.zeros(8)
    table[row[0]] = np.asarray(rewrite["count"])[0, :, 0]  # the last write wins, as in replay
    np.testing.assert_array_equal(table[[3, 5, 7]], [3, 1, 1])


def test_equal_agents_share_compiled_functions() -> None:
    def of(obs_dim: float) -> Counter:
        return Counter(Spec(obs_dim, 1))  # type: ignore[arg-type]

    first, again, other = (compiled.compile_agent(of(n), 1, 1).update for n in (5, 5, 5.0))
    assert first is again
    assert first is not other  # equal in Python, but computed differently
    unhashable = Counter([1, 1])  # type: ignore[arg-type]
    state = compiled.compile_agent(unhashable, 1, 1).init(compiled.seed_keys([0, 1]))
    assert state.shape == (2,)
