"""Episodes in, returns out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent, Refining
from langevinrl.envs.factory import EnvFactory
from langevinrl.envs.vector import VectorEnv, episode_seed
from langevinrl.errors import UserError, field
from langevinrl.registry import METHODS
from langevinrl.runs.compiled import compile_once
from langevinrl.types import Array, PyTree

# What an action's randomness comes from, outside of training:
#   keyed       the observation's own bits, so that the same one always draws the same action
#   sampled     a fresh draw each time, exploring as in training
#   noise-free  the observation's bits for where the chain starts, and no noise after that
Mode: TypeAlias = Literal["keyed", "sampled", "noise-free"]


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
    mode: Mode = "keyed"  # how actions were drawn

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


def require_mode(agent: Agent, mode: str) -> Mode:
    """The mode, if there is one of that name and the agent has it."""
    for known in get_args(Mode):
        if mode == known and (mode != "noise-free" or isinstance(agent, Refining)):
            return known
    if mode != "noise-free":
        raise UserError(f"mode is {mode!r}; expected one of {', '.join(get_args(Mode))}")
    able = [name for name in METHODS if issubclass(METHODS[name].load(), Refining)]
    raise UserError(
        f"{type(agent).__name__} has no noise-free form: the noise of its chain is part of its "
        f"policy. Those that have one: {', '.join(able)}. Use {field('mode', 'keyed')}"
    )


def policy(agent: Agent, state: PyTree, obs: Array, seed: Array, mode: Mode = "keyed") -> Array:
    """Actions (B, A) for observations (B, O), each drawn with its row's seed (B,)."""

    def one(row: Array, seed: Array) -> Array:
        key = jax.random.key(seed)
        if mode == "noise-free":
            assert isinstance(agent, Refining)
            return agent.refine(state, row[None], key)[0]
        return agent.act(state, row[None], key, explore=mode == "sampled")[0]

    bound = agent.spec.act_bound
    return jnp.clip(jax.vmap(one)(obs, seed), -bound, bound)


def _policy_over_seeds(agent: Agent, mode: Mode, state: PyTree, obs: Array, seed: Array) -> Array:
    return jax.vmap(partial(policy, agent, mode=mode))(state, obs, seed)


def row_seeds(obs: np.ndarray, mode: Mode, generator: np.random.Generator) -> np.ndarray:
    """The seed of each row of observations (..., O): its own bits, or a fresh one if sampled."""
    if mode == "sampled":
        return generator.integers(2**32, size=obs.shape[:-1], dtype=np.uint32)
    return observation_seed(obs)


class Evaluator:
    """Plays whole episodes side by side, at one chain a step, apart from training randomness."""

    def __init__(
        self,
        agent: Agent,
        env: str | EnvFactory,
        seeds: Sequence[int],
        num_episodes: int,
        mode: Mode = "keyed",
        timeout: float = 0.0,
    ) -> None:
        """`timeout` is the seconds that one environment may take for a step; 0 is no limit."""
        self.seeds, self.num_episodes = list(seeds), num_episodes
        self.mode = require_mode(agent, mode)
        self.envs = VectorEnv(env, seeds, num_episodes, agent.spec.act_bound, timeout=timeout)
        self.policy = compile_once(_policy_over_seeds, agent, self.mode)

    def play(self, state: PyTree, seed: int) -> list[Episode]:
        """Episodes of every trained seed (state has a leading S); starts depend on `seed` only."""
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
