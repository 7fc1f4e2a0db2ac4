"""Selection among candidates, and exploration noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers import choose
from langevinrl.samplers.choose import add_exploration, best_of, blockwise
from langevinrl.types import Array


def test_best_of_returns_the_most_valuable_candidate_of_each_row() -> None:
    candidates = jnp.arange(12.0).reshape(3, 2, 2)
    q = jnp.array([[1.0, 5.0], [4.0, 3.0], [2.0, 9.0]])
    np.testing.assert_array_equal(best_of(candidates, lambda _: q), [[4.0, 5.0], [10.0, 11.0]])


def test_best_of_returns_the_first_of_equal_candidates() -> None:
    candidates = jnp.arange(6.0).reshape(3, 1, 2)
    np.testing.assert_array_equal(best_of(candidates, lambda c: c[..., 0] * 0), [[0.0, 1.0]])


def test_best_of_does_not_score_a_single_candidate() -> None:
    def refuse(candidates: Array) -> Array:
        raise AssertionError("scored")

    candidates = jnp.ones((1, 4, 2))
    np.testing.assert_array_equal(best_of(candidates, refuse), candidates[0])


@pytest.mark.parametrize("num", [1, 4, 5])  # one block, two whole blocks, and a remainder
def test_blockwise_equals_one_call(monkeypatch: pytest.MonkeyPatch, num: int) -> None:
    seen: list[tuple[int, ...]] = []

    def value(action: Array) -> Array:
        seen.append(action.shape)
        return action.sum(axis=-1)

    candidates = jax.random.normal(jax.random.key(0), (num, 3, 2))
    monkeypatch.setattr(choose, "BLOCK_ROWS", 7)  # two candidates of three rows
    np.testing.assert_allclose(blockwise(value, candidates), candidates.sum(axis=-1), rtol=1e-6)
    assert (num, 3, 2) not in seen or num == 1
    np.testing.assert_allclose(blockwise(value, candidates[0]), candidates[0].sum(axis=-1))


def test_exploration_noise_is_scaled_and_clipped_only_to_a_given_bound() -> None:
    action, noise = jnp.array([[1.9, 0.5]]), jnp.array([[2.0, -1.0]])
    np.testing.assert_allclose(add_exploration(action, 0.5, noise), [[2.9, 0.0]], rtol=1e-6)
    held = add_exploration(action, jnp.asarray(0.5), noise, 2.0)
    np.testing.assert_allclose(held, [[2.0, 0.0]], rtol=1e-6)
