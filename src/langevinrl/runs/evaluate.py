"""Episodes in, returns out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.vector import EnvFactory, VectorEnv, episode_seed
from langevinrl.types import Array, PyTree


class Episode(NamedTuple):
    """One episode played to its end."""

    seed: int  # of training
    episode: int
    total: float  # sum of raw rewards
    length: int


class Evaluation(NamedTuple):
    """The episodes of every seed at one point of a run."""

    iteration: int
    episodes: list[Episode]

    @property
    def mean(self) -> float:
        """Mean return over all seeds and episodes."""
        return float(np.mean([episode.total for episode in self.episodes]))

    @property
    def std(self) -> float:
        """Sample standard deviation of the same returns; 0 for a single one."""
        returns = [episode.total for episode in self.episodes]
        return float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0


def observation_seed(obs: np.ndarray) -> np.ndarray:
    """The bits of mean x std of observations (..., O): one observation always draws one action.

    On the host and in float64: a compiled float32 sum is ordered by the number of rows, and the
    last bit of it is another seed.
    """
    wide = np.asarray(obs, np.float64)
    return (wide.mean(-1) * wide.std(-1)).astype(np.float32).view(np.uint32)


def policy(agent: Agent, state: PyTree, obs: Array, seed: Array) -> Array:
    """Evaluation actions (B, A) for observations (B, O), each drawn with its row's seed (B,)."""

    def one(row: Array, seed: Array) -> Array:
        return agent.act(state, row[None], jax.random.key(seed), explore=False)[0]

    bound = agent.spec.act_bound
    return jnp.clip(jax.vmap(one)(obs, seed), -bound, bound)


class Evaluator:
    """Plays whole episodes side by side, at one chain a step, apart from training randomness."""

    def __init__(
        self, agent: Agent, env: str | EnvFactory, seeds: Sequence[int], num_episodes: int
    ) -> None:
        self.seeds, self.num_episodes = list(seeds), num_episodes
        self.envs = VectorEnv(env, seeds, num_episodes, agent.spec.act_bound)
        self.policy = jax.jit(jax.vmap(partial(policy, agent)))

    def play(self, state: PyTree, seed: int) -> list[Episode]:
        """Episodes of every trained seed (state has a leading S); starts depend on `seed` only."""
        starts = [episode_seed(seed, episode) for episode in range(self.num_episodes)]
        obs = self.envs.reset(starts * len(self.seeds))
        total = np.zeros(self.envs.shape)
        length = np.zeros(self.envs.shape, int)
        running = np.ones(self.envs.shape, bool)
        while running.any():
            action = self.policy(state, obs, observation_seed(obs))
            step = self.envs.step(np.asarray(action))
            total += np.where(running, step.reward, 0.0)
            length += running
            running &= ~self.envs.ended
            obs = self.envs.obs
        return [
            Episode(seed, e, float(total[s, e]), int(length[s, e]))
            for s, seed in enumerate(self.seeds)
            for e in range(self.num_episodes)
        ]

    def close(self) -> None:
        self.envs.close()
