"""Time of the training loop without agent and environment, vector stepping included."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.runs.callbacks import metric_rows
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update


@dataclass(frozen=True)
class NullAgent:
    """Agent that computes nothing, so that only the loop is timed."""

    spec: Spec
    columns: ClassVar[dict[str, str]] = {}

    def init(self, key: Key) -> PyTree:
        return jnp.zeros(1)

    def noise(self, key: Key, num: int) -> PyTree:
        return ()

    def policy(self, state: PyTree, obs: Array, noise: PyTree, *, explore: bool) -> Array:
        return jnp.zeros((len(obs), self.spec.act_dim))

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        # Every part of the batch is read, so that its transfer to the device is timed.
        return Update(state, {"sum": sum((part.sum() for part in batch[:5]), jnp.zeros(()))})

    def trace(self, state: PyTree, obs: Array, noise: PyTree) -> Array:
        return jnp.zeros((1, len(obs), self.spec.act_dim))

    def policy_weight(self, state: PyTree) -> None:
        return None


class NullEnv(gym.Env[np.ndarray, np.ndarray]):
    """Environment whose steps change nothing."""

    def __init__(self, spec: Spec) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (spec.obs_dim,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (spec.act_dim,), np.float32)
        self.obs = np.zeros(spec.obs_dim, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        return self.obs, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return self.obs, 0.0, False, False, {}


def loop_overhead(spec: Spec, num_envs: int) -> Callable[[], None]:
    """Return a function that runs one iteration of the real loop and its log."""
    config = RunConfig("none", warmup=256, iterations=1, capacity=100_000, num_envs=num_envs)
    run = Run(config, env=partial(NullEnv, spec), agent=NullAgent).__enter__()
    while run.advance().warming_up:
        pass

    def iterate() -> None:
        info = run.advance()
        jax.block_until_ready(info.metrics)  # type: ignore[no-untyped-call]
        if info.iteration % config.log_every == 0:
            json.dumps(metric_rows(run, info))

    return iterate
