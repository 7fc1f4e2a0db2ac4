"""Episodes in, returns out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.gym import EnvFactory, Lanes, lane_seed
from langevinrl.types import Array, Key, PyTree


class Episode(NamedTuple):
    seed: int  # of training
    episode: int
    total: float  # sum of raw rewards
    length: int


def observation_key(obs: Array) -> Key:
    """A key from the bits of mean(obs) x std(obs): one observation always draws one action."""
    return jax.random.key(jax.lax.bitcast_convert_type(obs.mean() * obs.std(), jnp.uint32))


def policy(agent: Agent, state: PyTree, obs: Array) -> Array:
    """Evaluation actions (B, A) for observations (B, O): a deterministic function of each row."""

    def one(row: Array) -> Array:
        return agent.act(state, row[None], observation_key(row), explore=False)[0]

    bound = agent.spec.act_bound
    return jnp.clip(jax.vmap(one)(obs), -bound, bound)


class Evaluator:
    """Plays whole episodes side by side, at one chain a step, apart from training randomness."""

    def __init__(
        self, agent: Agent, env: str | EnvFactory, seeds: Sequence[int], num_episodes: int
    ) -> None:
        self.seeds, self.num_episodes = list(seeds), num_episodes
        self.lanes = Lanes(env, seeds, num_episodes, agent.spec.act_bound)
        self.policy = jax.jit(jax.vmap(lambda state, obs: policy(agent, state, obs)))

    def play(self, state: PyTree, seed: int) -> list[Episode]:
        """Episodes of every trained seed (state has a leading S); starts depend on `seed` only."""
        starts = [lane_seed(seed, episode) for episode in range(self.num_episodes)]
        obs = self.lanes.reset(starts * len(self.seeds))
        total = np.zeros(self.lanes.shape)
        length = np.zeros(self.lanes.shape, int)
        running = np.ones(self.lanes.shape, bool)
        while running.any():
            step = self.lanes.step(np.asarray(self.policy(state, obs)))
            total += np.where(running, step.reward, 0.0)
            length += running
            running &= ~self.lanes.ended
            obs = self.lanes.obs
        return [
            Episode(seed, e, float(total[s, e]), int(length[s, e]))
            for s, seed in enumerate(self.seeds)
            for e in range(self.num_episodes)
        ]

    def close(self) -> None:
        self.lanes.close()
