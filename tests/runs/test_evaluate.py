"""Evaluation episodes: a function of the state alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toys

from langevinrl.envs.factory import EnvFactory
from langevinrl.runs.evaluate import Episode, Evaluator
from langevinrl.runs.policy import observation_seed, seeded_action
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update

OBS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


@dataclass(frozen=True)
class Constant:
    """An agent whose action is its state plus scaled noise."""

    columns: ClassVar[dict[str, str]] = {}
    spec: Spec
    scale: float = 0.0

    def init(self, key: Key) -> PyTree:
        del key
        return jnp.zeros(())

    def noise(self, key: Key, num: int) -> PyTree:
        return jax.random.uniform(key, (num, self.spec.act_dim), minval=-1.0)

    def policy(self, state: PyTree, obs: Array, noise: PyTree, *, explore: bool) -> Array:
        assert not explore
        return state + self.scale * noise

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        raise NotImplementedError


def draws(obs: np.ndarray) -> np.ndarray:
    """Return the actions of an agent that only adds noise."""
    agent: Any = Constant(Spec(obs.shape[1], 2), scale=1.0)
    return np.asarray(seeded_action(agent, "keyed", jnp.zeros(()), obs, observation_seed(obs)))  # type: ignore[arg-type]


def play(
    env: str | EnvFactory, num_episodes: int, seed: int = 0, scale: float = 0.0, act_dim: int = 1
) -> list[Episode]:
    evaluator = Evaluator(Constant(Spec(3, act_dim), scale), env, [0], num_episodes)
    try:
        return evaluator.play(jnp.zeros(1), seed)
    finally:
        evaluator.close()


def test_seed_is_the_bits_of_mean_times_deviation() -> None:
    obs = np.array([[1.0, 3.0], [-1.0, -3.0], [0.0, 0.0]], np.float32)
    bits = np.array([2.0, -2.0, 0.0], np.float32).view(np.uint32)
    np.testing.assert_array_equal(observation_seed(obs), bits)
    assert observation_seed(obs).dtype == np.uint32


@pytest.mark.parametrize("size", [3, 17, 376])
def test_seed_of_a_row_does_not_depend_on_other_rows(size: int) -> None:
    obs = np.random.default_rng(1).normal(size=(2, 20, size)).astype(np.float32)
    together = observation_seed(obs)
    assert len(np.unique(together)) == 40
    for seed in range(2):
        np.testing.assert_array_equal(observation_seed(obs[seed]), together[seed])
        for row in range(20):
            alone = observation_seed(obs[seed, row][None])
            np.testing.assert_array_equal(alone, together[seed, row : row + 1])


def test_same_observation_gives_the_same_action_and_another_gives_another() -> None:
    actions = draws(OBS)
    np.testing.assert_array_equal(actions, draws(OBS))
    np.testing.assert_array_equal(draws(OBS[::-1].copy()), actions[::-1])
    np.testing.assert_array_equal(
        draws(np.repeat(OBS[:1], 4, axis=0)), np.repeat(actions[:1], 4, 0)
    )
    assert len(np.unique(actions)) == actions.size
    for row in range(len(OBS)):
        np.testing.assert_array_equal(draws(OBS[row : row + 1])[0], actions[row])


def test_actions_are_clipped_to_the_agents_box() -> None:
    agent: Any = Constant(Spec(3, 2, act_bound=2.0))
    for value, expected in [(7.0, 2.0), (-7.0, -2.0), (1.5, 1.5)]:
        actions = seeded_action(agent, "keyed", jnp.array(value), OBS, observation_seed(OBS))
        np.testing.assert_array_equal(actions, expected)


def test_length_and_return_of_an_episode() -> None:
    for env, length in [(toys.ending, 5), (toys.timed, 7)]:
        assert play(env, 3) == [Episode(0, i, float(length), length) for i in range(3)]


def test_every_seed_plays_its_own_state_from_the_same_starts() -> None:
    evaluator = Evaluator(Constant(Spec(3, 1)), toys.wide, [10, 20], 2)
    episodes = evaluator.play(jnp.array([0.25, -0.5]), 0)
    assert [(e.seed, e.episode, e.length) for e in episodes] == [
        (seed, episode, 7) for seed in (10, 20) for episode in (0, 1)
    ]
    # The reward is one plus the action, and the task's box is twice as wide.
    np.testing.assert_allclose([e.total for e in episodes], [10.5, 10.5, 0.0, 0.0], atol=1e-6)
    evaluator.close()


def test_episode_does_not_depend_on_the_number_of_episodes() -> None:
    """Episodes of Hopper end at different times."""
    few, many = (play("Hopper-v4", n, scale=1.0, act_dim=3) for n in (2, 6))
    assert many[:2] == few
    assert len({e.length for e in many}) > 1
    assert len({e.total for e in many}) == 6
