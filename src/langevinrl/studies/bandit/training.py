"""Training on the bandit, with the agents and the loop of all other tasks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp

from langevinrl.agents import Agent
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.studies.bandit.env import Bandit
from langevinrl.studies.bandit.settings import COMMON, TRAININGS, WARMUP, BanditConfig
from langevinrl.types import Array, Key, PyTree

ENVS, UPDATES = 10, 10  # environments and updates per iteration: one new action per update
# Uses of randomness outside training; the position in this tuple selects the key.
PURPOSES = ("sample", "start", "chain", "page", "sweep", "page chain", "gradient")


def train(config: BanditConfig, name: str) -> tuple[Agent, PyTree]:
    """Train a method; return the agent and its states, one per seed (S, ...)."""
    run_config, finish = run_settings(config, name), TRAININGS[name].finish
    last = run_config.iterations or 0
    with Run(run_config, env=partial(Bandit, config.bound)) as run:
        run.until(last - last // 3)
        if finish and not config.quick:  # saves a compilation
            run.change_agent(**finish)
        run.until(last)
    return run.agent, run.state


def run_settings(config: BanditConfig, name: str) -> RunConfig:
    """Return the run that trains a method, on uniform actions throughout."""
    method = TRAININGS[name]
    shorter = 10 if config.quick else 1
    return RunConfig(
        env="langevinrl.studies.bandit.env:make",
        agent=name,
        hyperparameters=COMMON | method.hyperparameters,
        iterations=method.updates // UPDATES // shorter,
        seed=config.seed,
        seeds=config.seeds,
        num_envs=ENVS,
        updates_per_iteration=UPDATES,
        action_bound=config.bound,
        random_actions=True,
        warmup=WARMUP // shorter,
        batch_size=method.batch_size,
        capacity=WARMUP + method.updates,
    ).resolved()


def each_seed(config: BanditConfig, states: PyTree) -> Iterator[tuple[int, PyTree]]:
    """Iterate over seeds and their states, out of states (S, ...)."""
    for i, seed in enumerate(config.run_seeds):
        yield seed, jax.tree.map(lambda x, i=i: x[i], states)


def constant_obs(num: int) -> Array:
    """Return the constant observation, (num, 1)."""
    return jnp.zeros((num, 1))


def key_for(seed: int, purpose: str) -> Key:
    """Return the key for one purpose, independent of training."""
    return jax.random.fold_in(jax.random.key(seed), PURPOSES.index(purpose) + 1)
