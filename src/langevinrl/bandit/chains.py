"""Every method's chain followed step by step, from any starting points."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.agents.dacer import DACER
from langevinrl.agents.dipo import DIPO
from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.lql import LQL
from langevinrl.agents.mfp import MFP
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.qsm import QSM
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sac import SAC
from langevinrl.agents.sdac import SDAC
from langevinrl.bandit.settings import BanditConfig
from langevinrl.bandit.training import constant_obs, key_for
from langevinrl.samplers.diffusion import denoise, make_schedule, reverse
from langevinrl.samplers.flow import integrate
from langevinrl.samplers.langevin import draw
from langevinrl.types import Array, Key, PyTree


def trace(agent: Agent, state: PyTree, start: Array, key: Key) -> Array:
    """Every point of the chains that begin at `start` (B, 2): (steps + 1, B, 2)."""
    obs, bound = constant_obs(len(start)), agent.spec.act_bound
    match agent:
        case LQL() | NCLQL():
            value = partial(agent.critic.apply, state.critic.params, obs)
            path = draw(value, start.shape, agent.chain, key, start=start, trace=True)
        case QSM():
            score = partial(agent.score.apply, state.actor.params, obs)
            schedule = make_schedule(agent.schedule, agent.num_steps)
            path = reverse(score, schedule, start, key, bound, trace=True)
        case MFP():
            velocity = partial(agent.actor.velocity, state.actor.params, obs)
            path = integrate(velocity, start, agent.flow_steps, trace=True)
        case SAC():  # a single jump from the noise
            path = jnp.stack([start, agent.actor.place(state.actor.params, obs, start)[0]])
        case SDAC() | DPMD() | QVPO() | DACER() | DIPO():
            slow = isinstance(agent, SDAC | DPMD | QVPO)  # these act with the target copy
            params = state.actor.target_params if slow else state.actor.params
            noise = partial(agent.actor.network.apply, params, obs)
            schedule = agent.actor.schedule
            path = denoise(noise, schedule, start.shape, key, bound=bound, start=start, trace=True)
        case _:
            raise NotImplementedError(f"no way to follow the chains of {type(agent).__name__}")
    return jnp.clip(path, -bound, bound)


def follow_chains(agent: Agent, state: PyTree, config: BanditConfig) -> dict[str, np.ndarray]:
    """Chains from the starting law, and from a grid that covers the box."""
    follow = jax.jit(partial(trace, agent))
    axis = jnp.linspace(-config.bound, config.bound, 15)
    grid = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    start = jnp.clip(
        jax.random.normal(key_for(0, "start"), grid.shape), -config.bound, config.bound
    )
    paths = {"chains": start, "panels": grid}
    return {name: np.asarray(follow(state, x, key_for(0, "chain"))) for name, x in paths.items()}
