"""Trained policies: shapes, compiled programs, modes, and agreement with evaluation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.compiled import compile_once
from langevinrl.runs.evaluate import Evaluator
from langevinrl.runs.policy import Policy, require_mode, seeded_action
from langevinrl.types import Spec

BOX = gym.spaces.Box(
    np.array([[-3.0, 0.0], [1.0, -9.0]], np.float32), np.array([[7.0, 1.0], [2.0, 9.0]], np.float32)
)
DICT = gym.spaces.Dict(
    {"place": gym.spaces.Box(-1, 1, (2, 3)), "speed": gym.spaces.Box(-9, 9, (1,), np.float64)}
)
SMOOTH: dict[str, Any] = {"inverse_temperature": 10.0, "normalise": False}


def make_policy(spaces: TaskSpaces, agent: str = "nclql", **fields: Any) -> Policy:
    """Return an untrained policy of two seeds."""
    made = METHODS[agent].load()(spaces.spec, hidden=(8, 8), **fields)
    state = jax.vmap(made.init)(jax.random.split(jax.random.key(0), 2))
    if agent == "nclql-auto":  # its chain follows the critics only after an update
        gradient = jax.tree.map(lambda leaf: leaf + 1, state.gradient)
        state = state._replace(gradient=gradient, updates=state.updates + 1)
    return Policy(made, state, spaces, seed=0)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return make_policy(TaskSpaces(DICT, BOX), num_levels=3, embedding_size=4, **SMOOTH)


def batch(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    place = rng.uniform(-1, 1, (size, 2, 3)).astype(np.float32)
    return {"place": place, "speed": rng.uniform(-9, 9, (size, 1))}


class Recorder(gym.Env[np.ndarray, np.ndarray]):
    """An environment that records every observation with the action taken there."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, record: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.record, self.steps, self.obs = record, 0, np.zeros(3, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.obs = 0, self.np_random.normal(size=3).astype(np.float32)
        return self.obs, {}

    def step(self, action: np.ndarray) -> Any:
        self.record.append((self.obs, np.array(action)))
        self.steps += 1
        self.obs = self.np_random.normal(size=3).astype(np.float32)
        return self.obs, 0.0, False, self.steps == 3, {}


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        ("nclql", {"num_levels": 3, "best_of": 2, **SMOOTH}),
        ("nclql-auto", {"calm_updates": 1}),
        ("mfp", {"flow_steps": 3, "best_of": 3}),
    ],
)
def test_predict_and_evaluate_give_the_same_actions(agent: str, fields: dict[str, Any]) -> None:
    spaces = TaskSpaces(Recorder.observation_space, Recorder.action_space)
    policy = make_policy(spaces, agent, **fields)
    record: list[tuple[np.ndarray, np.ndarray]] = []
    evaluator = Evaluator(policy.agent, lambda: Recorder(record), [0, 1], num_episodes=3)
    evaluator.play(policy.state, seed=0)
    evaluator.close()
    # Each step plays the three episodes of seed 0, then those of seed 1.
    for seed_index in (0, 1):
        pairs = [pair for i, pair in enumerate(record) if i // 3 % 2 == seed_index]
        assert len(pairs) == 9
        for obs, action in pairs[:2]:  # one at a time
            np.testing.assert_allclose(policy.act(obs, seed_index=seed_index), action, atol=1e-6)
        obs, actions = (np.stack(column) for column in zip(*pairs, strict=True))
        np.testing.assert_allclose(policy.act(obs, seed_index=seed_index), actions, atol=1e-6)


def test_observations_and_actions_have_the_spaces_of_the_environment(policy: Policy) -> None:
    many = policy.act(batch(5))
    assert many.shape == (5, 2, 2) and many.dtype == BOX.dtype
    assert all(BOX.contains(action) for action in many)
    one = policy.act({name: values[0] for name, values in batch(5).items()})
    assert one.shape == (2, 2)
    np.testing.assert_allclose(one, many[0], atol=1e-5)


def test_one_program_serves_all_sizes_up_to_a_power_of_two(policy: Policy) -> None:
    full = policy.act(batch(8))
    program = compile_once(seeded_action, policy.agent, "keyed")
    before = program._cache_size()
    for size in (5, 6, 7):
        rows = {name: values[:size] for name, values in batch(8).items()}
        np.testing.assert_allclose(policy.act(rows), full[:size], atol=1e-6)
    assert program._cache_size() == before


def test_weights_of_a_seed_are_sliced_once(policy: Policy) -> None:
    policy.act(batch(1), seed_index=1)
    first = policy._state_of(1)
    policy.act(batch(2), seed_index=1)
    assert policy._state_of(1) is first
    with pytest.raises(UserError, match="seed_index is 2; trained seeds: 2"):
        policy.act(batch(1), seed_index=2)


@pytest.mark.parametrize("agent", METHODS)
def test_noise_free_mode_needs_an_agent_with_refine(agent: str) -> None:
    made = METHODS[agent].load()(Spec(3, 2), hidden=(8, 8))
    if agent in ("nclql", "nclql-auto", "lql", "sac", "mfp"):
        assert require_mode(made, "noise-free") == "noise-free"
    else:
        able = "nclql, nclql-auto, lql, sac, mfp"
        with pytest.raises(UserError, match=rf"no noise-free.*{able}.*mode=keyed"):
            require_mode(made, "noise-free")


def test_noise_free_mode_has_no_noise_after_the_start() -> None:
    """From a start at zero, only the mode `sampled` gives equal observations other actions."""
    spaces = TaskSpaces(DICT, BOX)
    policy = make_policy(spaces, "lql", num_steps=5, start="zero", normalise=False)
    twice = {name: np.concatenate([values, values]) for name, values in batch(1).items()}
    first, second = policy.act(twice, "noise-free")
    np.testing.assert_array_equal(first, second)
    assert (policy.act(twice, "keyed")[0] != first).any()
    drawn = policy.act(twice, "sampled")
    assert (drawn[0] != drawn[1]).all()
    with pytest.raises(UserError, match="mode is 'best'; expected one of keyed, sampled"):
        policy.act(twice, "best")  # type: ignore[arg-type]
