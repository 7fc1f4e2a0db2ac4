"""Samples of LQL and NC-LQL over w, along the paper's unit scores and along full gradients."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.analysis.tables import Row
from langevinrl.studies.bandit.chains import normal_start, trace
from langevinrl.studies.bandit.env import MODE_STD
from langevinrl.studies.bandit.measure import measure
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, each_seed, key_for
from langevinrl.types import Array, PyTree

PAGE_CHAINS = 300  # chains that the page shows
SHOWN = 1_500  # samples that a panel of the figure shows
GRADIENT_LIMIT = 100.0  # largest w sampled by the full gradient: beyond it, modes are points


def sweep_direction(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], dict[str, np.ndarray]]:
    """Measure samples at every w; return some of them (W, n, 2) and chains (W, steps + 1, n, 2).

    The critics do not depend on w: with a discount of zero nothing is bootstrapped from samples.
    """

    def at(w: Array) -> LQL | NCLQL:
        return dataclasses.replace(agent, inverse_temperature=w)  # type: ignore[arg-type]

    act = jax.jit(lambda s, w, k: at(w).act(s, constant_obs(config.samples), k, explore=False))
    follow = jax.jit(lambda s, w, x, k: trace(at(w), s, x, k))
    start = normal_start(PAGE_CHAINS, config.bound, "page")
    rows, swept, chains = [], [], []
    for w in config.sweep:
        for seed, state in each_seed(config, states):
            actions = np.asarray(act(state, w, key_for(seed, "sweep")))
            row = {"method": name, "score": "direction", "seed": seed}
            rows.append(row | measure(actions, w, config.bound))
            if seed == config.seed:
                swept.append(actions[:SHOWN])
                chains.append(np.asarray(follow(state, w, start, key_for(0, "page chain"))))
    return rows, {"swept": np.stack(swept), "page_chains": np.stack(chains)}


def best_w(rows: list[Row]) -> float:
    """Return the w with the highest mean reward over seeds, as in the paper."""
    rewards: dict[float, list[float]] = {}
    for row in rows:
        rewards.setdefault(row["w"], []).append(row["reward_mean"])
    return max(rewards, key=lambda w: float(np.mean(rewards[w])))


def sweep_gradient(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> list[Row]:
    """Measure samples of the first seed along the full gradient, in many small steps."""
    steps = 50 if config.quick else 500
    length = (
        {"steps_per_level": steps // agent.num_levels}
        if isinstance(agent, NCLQL)
        else {"num_steps": steps}
    )
    long = dataclasses.replace(agent, normalise=False, **length)  # type: ignore[arg-type]

    def at(w: Array) -> LQL | NCLQL:
        # A tenth of the step size at which a chain at a mode of curvature w / MODE_STD² diverges.
        # The chain adds the gradients of all critics, so w is divided by their number.
        fields: dict[str, Any] = {
            "inverse_temperature": w / agent.critic.num_members,
            "step_size": 0.4 * MODE_STD**2 / w,
        }
        return dataclasses.replace(long, **fields)

    # As many samples as above: the distance of a histogram depends on their number.
    obs = constant_obs(config.samples)
    act = jax.jit(lambda s, w, k: at(w).act(s, obs, k, explore=False))
    seed, state = next(each_seed(config, states))
    rows = []
    for w in config.sweep:
        if w <= GRADIENT_LIMIT:
            actions = np.asarray(act(state, w, key_for(seed, "gradient")))
            row = {"method": name, "score": "gradient", "seed": seed}
            rows.append(row | measure(actions, w, config.bound))
    return rows
