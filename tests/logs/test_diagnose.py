"""Tests of sampler statistics: values worked out by hand, and no effect on learning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny import lql_config as config

from langevinrl.logs import diagnose
from langevinrl.runs.train import train
from langevinrl.samplers.langevin import constant_plan, path_gradients
from langevinrl.types import Array, Spec


class Known:
    """A chain of four steps in two levels through known points."""

    spec = Spec(1, 2, act_bound=2.0)
    num_levels = 2

    def __init__(self, ends: Array, scores: Array | None = None) -> None:
        self.ends, self.scores = ends, scores

    def noise(self, key: Array, num: int) -> None:
        return None

    def trace(self, state: Any, obs: Array, noise: Any, start: Array | None = None) -> Array:
        start = jnp.zeros_like(self.ends)
        half = start.at[:, 0].set(1.0)
        return jnp.stack([start, start, half, half, self.ends])

    def trace_scores(self, state: Any, obs: Array, path: Array) -> Array | None:
        return self.scores


def measure(agent: Known) -> dict[str, float]:
    obs = jnp.zeros((len(agent.ends) // diagnose.NUM_REPEATS, 1))
    found = diagnose.diagnose(agent, None, obs, jax.random.key(0))  # type: ignore[arg-type]
    return {name.removeprefix("sampler/"): float(value) for name, value in found.items()}


def test_statistics_of_known_points() -> None:
    end = jnp.tile(jnp.array([[2.0, 0.0]]), (2 * diagnose.NUM_REPEATS, 1))
    scores = jnp.full((4, len(end), 2), 3.0)
    assert measure(Known(end, scores)) == pytest.approx(
        {
            "clipped": 0.5,  # one coordinate of two
            "spread": 0.0,
            "movement": 1.0,  # of two half-widths' length
            "movement/level_00": 0.5,
            "movement/level_01": 0.5,
            "score_norm": 3 * 2**0.5,
        },
        rel=1e-5,
    )


def test_the_spread_is_within_an_observation_not_between_observations() -> None:
    repeats = diagnose.NUM_REPEATS
    apart = jnp.repeat(jnp.array([[-1.0, -1.0], [1.0, 1.0]]), repeats, axis=0)
    found = measure(Known(apart))
    assert found["spread"] == 0.0 and "score_norm" not in found
    mixed = jnp.tile(jnp.array([[-1.0, -1.0], [1.0, 1.0]]), (repeats, 1))
    assert measure(Known(mixed))["spread"] == pytest.approx(0.5)


def test_scores_are_gradients_at_the_start_of_each_step() -> None:
    path = jnp.arange(6.0).reshape(3, 2, 1)  # two steps of two chains
    found = path_gradients(lambda a, level: jnp.square(a).sum(axis=-1), path, constant_plan(2, 0.1))
    np.testing.assert_allclose(found, 2 * path[:-1])


def test_logging_does_not_affect_learning(tmp_path: Path) -> None:
    """Logging at every iteration or once at the end gives the same bytes."""
    often = train(config(tmp_path / "often", log_every=1), quiet=True)
    once = train(config(tmp_path / "once", log_every=100), quiet=True)
    a, b = (max((run / "checkpoints").iterdir()) for run in (often, once))
    for group in ("state", "replay", "envs"):
        one, other = ((place / f"{group}.safetensors").read_bytes() for place in (a, b))
        assert one == other, group
    last = [(run / "metrics.jsonl").read_text().splitlines()[-1] for run in (often, once)]
    assert last[0] == last[1]
    assert "sampler/score_norm" in json.loads(last[0])
