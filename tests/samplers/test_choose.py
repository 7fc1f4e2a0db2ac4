"""Choosing among candidates, and exploration noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers import choose
from langevinrl.samplers.choose import best_of, blockwise, jitter
from langevinrl.types import Array

KEY = jax.random.key(0)


def test_each_row_keeps_its_own_best() -> None:
    candidates = jnp.arange(12.0).reshape(3, 2, 2)
    q = jnp.array([[1.0, 5.0], [4.0, 3.0], [2.0, 9.0]])
    np.testing.assert_array_equal(best_of(candidates, lambda _: q), [[4.0, 5.0], [10.0, 11.0]])


@pytest.mark.parametrize("num", [1, 4, 5, 6])  # one block, two whole ones, and a remainder
def test_blocks_together_are_the_whole(monkeypatch: pytest.MonkeyPatch, num: int) -> None:
    seen: list[tuple[int, ...]] = []

    def value(action: Array) -> Array:
        seen.append(action.shape)
        return action.sum(axis=-1)

    candidates = jax.random.normal(KEY, (num, 3, 2))
    monkeypatch.setattr(choose, "BLOCK_ROWS", 7)  # two candidates of three rows
    np.testing.assert_allclose(blockwise(value, candidates), candidates.sum(axis=-1), rtol=1e-6)
    assert (num, 3, 2) not in seen or num == 1
    np.testing.assert_allclose(blockwise(value, candidates[0]), candidates[0].sum(axis=-1))


def test_first_wins_a_tie() -> None:
    candidates = jnp.arange(6.0).reshape(3, 1, 2)
    np.testing.assert_array_equal(best_of(candidates, lambda c: c[..., 0] * 0), [[0.0, 1.0]])


def test_a_single_candidate_is_not_scored() -> None:
    def refuse(candidates: Array) -> Array:
        raise AssertionError("scored")

    candidates = jnp.ones((1, 4, 2))
    np.testing.assert_array_equal(best_of(candidates, refuse), candidates[0])


def test_jitter_has_the_spread_it_is_told() -> None:
    noise = np.asarray(jitter(jnp.full((20_000, 2), 0.9), jnp.asarray(0.5), KEY, None)) - 0.9
    np.testing.assert_allclose(noise.std(axis=0), 0.5, rtol=0.02)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.01)


def test_jitter_stays_in_a_box_only_if_given_one() -> None:
    action = jnp.full((1_000, 2), 1.9)
    free, held = jitter(action, 0.5, KEY, None), jitter(action, 0.5, KEY, 2.0)
    assert float(free.max()) > 2.5
    np.testing.assert_array_equal(held, jnp.clip(free, -2.0, 2.0))
