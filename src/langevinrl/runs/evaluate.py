"""Evaluation episodes and their returns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.factory import EnvFactory
from langevinrl.envs.vector import VectorEnv, episode_seed
from langevinrl.runs.compiled import compile_once
from langevinrl.runs.policy import Mode, require_mode, row_seeds, seeded_action
from langevinrl.types import Array, PyTree


class Episode(NamedTuple):
    """Return and length of one finished episode."""

    seed: int  # training seed
    episode: int
    total: float  # sum of raw rewards
    length: int


class Evaluation(NamedTuple):
    """Episodes of every seed at one point of a run."""

    iteration: int
    episodes: list[Episode]
    mode: Mode = "keyed"  # source of the noise

    @property
    def mean(self) -> float:
        """Mean return over all seeds and episodes."""
        return float(np.mean([episode.total for episode in self.episodes]))

    @property
    def std(self) -> float:
        """Sample standard deviation of the returns; 0 for a single episode."""
        returns = [episode.total for episode in self.episodes]
        return float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0


def _act(agent: Agent, mode: Mode, state: PyTree, obs: Array, seed: Array) -> Array:
    """Return actions (S, B, A) of every trained seed."""
    return jax.vmap(partial(seeded_action, agent, mode))(state, obs, seed)


class Evaluator:
    """Environments and compiled policy for evaluation episodes, with their own randomness."""

    def __init__(
        self,
        agent: Agent,
        env: str | EnvFactory,
        seeds: Sequence[int],
        num_episodes: int,
        mode: Mode = "keyed",
        timeout: float = 0.0,
    ) -> None:
        """`timeout`: seconds that one environment may take for a step; 0 is no limit."""
        self.seeds, self.num_episodes = list(seeds), num_episodes
        self.mode = require_mode(agent, mode)
        self.envs = VectorEnv(env, seeds, num_episodes, agent.spec.act_bound, timeout=timeout)
        self.policy = compile_once(_act, agent, self.mode)

    def play(self, state: PyTree, seed: int) -> list[Episode]:
        """Play episodes of every trained seed (state has a leading S); `seed` sets their starts."""
        starts = [episode_seed(seed, episode) for episode in range(self.num_episodes)]
        generator = np.random.default_rng([seed, 0xAC7])
        obs = self.envs.reset(starts * len(self.seeds))
        total = np.zeros(self.envs.shape)
        length = np.zeros(self.envs.shape, int)
        running = np.ones(self.envs.shape, bool)
        while running.any():
            action = self.policy(state, obs, row_seeds(obs, self.mode, generator))
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
