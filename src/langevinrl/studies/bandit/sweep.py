"""LQL and NC-LQL sampled over w, by the paper's unit scores and by full gradients."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.analysis.tables import Row
from langevinrl.studies.bandit.chains import trace
from langevinrl.studies.bandit.env import WIDTH
from langevinrl.studies.bandit.measure import measure
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, each_seed, key_for
from langevinrl.types import Array, PyTree

WALKERS = 300  # chains that the page shows
SHOWN = 1_500  # samples that a panel of the figure shows
GRADIENT_LIMIT = 100.0  # the largest w walked by the full gradient: beyond, modes are points


def sweep_direction(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], dict[str, np.ndarray]]:
    """Samples at every w measured; some of them (W, n, 2) and some walks (W, steps + 1, n, 2).

    The critics do not depend on w, for without a future nothing is bootstrapped from samples.
    """

    def at(w: Array) -> LQL | NCLQL:
        return dataclasses.replace(agent, inverse_temperature=w)  # type: ignore[arg-type]

    act = jax.jit(lambda s, w, k: at(w).act(s, constant_obs(config.samples), k, explore=False))
    follow = jax.jit(lambda s, w, x, k: trace(at(w), s, x, k))
    start = jnp.clip(
        jax.random.normal(key_for(0, "walkers"), (WALKERS, 2)), -config.bound, config.bound
    )
    rows, swept, walks = [], [], []
    for w in config.sweep:
        for seed, state in each_seed(config, states):
            actions = np.asarray(act(state, w, key_for(seed, "sweep")))
            row = {"method": name, "score": "direction", "seed": seed}
            rows.append(row | measure(actions, w, config.bound))
            if seed == config.seed:
                swept.append(actions[:SHOWN])
                walks.append(np.asarray(follow(state, w, start, key_for(0, "walk"))))
    return rows, {"swept": np.stack(swept), "walks": np.stack(walks)}


def sweep_gradient(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> list[Row]:
    """The first seed's critic walked by its full gradient, in many small steps: Langevin proper."""
    num = 50 if config.quick else 500
    length = (
        {"steps_per_level": num // agent.num_levels}
        if isinstance(agent, NCLQL)
        else {"num_steps": num}
    )
    long = dataclasses.replace(agent, normalise=False, **length)  # type: ignore[arg-type]

    def at(w: Array) -> LQL | NCLQL:
        # A tenth of the step at which the walk round a mode of curvature w / WIDTH² would blow up.
        # The chain sums the members' gradients, which a unit score does not show; here it would
        # double w.
        fields: dict[str, Any] = {
            "inverse_temperature": w / agent.critic.num_members,
            "step_size": 0.4 * WIDTH**2 / w,
        }
        return dataclasses.replace(long, **fields)

    # As many as in the other sweep: a histogram's distance falls with the number of samples.
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
