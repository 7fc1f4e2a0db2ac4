"""Training a method on the bandit, by the agents and the loop that all tasks share."""

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

ENVS, UPDATES = 10, 10  # environments and updates of an iteration: one fresh action per update
# What randomness outside training is spent on.
PURPOSES = (
    "sample", "start", "chain", "walkers", "sweep", "walk", "gradient", "nclql", "lql",
)  # fmt: skip


def train(config: BanditConfig, name: str) -> tuple[Agent, PyTree]:
    """The agent and its trained states, one per seed (S, ...), by the loop all tasks share."""
    run_config, finish = run_settings(config, name), TRAININGS[name].finish
    last = run_config.iterations or 0
    with Run(run_config, env=partial(Bandit, config.bound)) as run:
        run.until(last - last // 3)
        if finish and not config.quick:  # a look saves its compilation
            run.change_agent(**finish)
        run.until(last)
    return run.agent, run.state


def run_settings(config: BanditConfig, name: str) -> RunConfig:
    """The run that trains a method: uniform actions throughout, in a box as wide as the task's."""
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
    """Each seed with its own state, out of states (S, ...)."""
    for i, seed in enumerate(config.run_seeds):
        yield seed, jax.tree.map(lambda x, i=i: x[i], states)


def constant_obs(num: int) -> Array:
    """The one observation there is, (num, 1)."""
    return jnp.zeros((num, 1))


def key_for(seed: int, purpose: str) -> Key:
    """Randomness for one purpose of the study, apart from that of training."""
    return jax.random.fold_in(jax.random.key(seed), PURPOSES.index(purpose) + 1)
