"""How each of the ten methods acts in evaluation, as tables.

`describe` is held to the agents' own `act` by tests/policies for every method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

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
from langevinrl.errors import UserError
from langevinrl.policies.tables import (
    Arrays,
    Box,
    Policy,
    alone,
    bias_rows,
    build,
    centre_features,
    facts_of,
    fold_scaling,
    index_rows,
    network_tables,
)
from langevinrl.samplers.diffusion import make_schedule
from langevinrl.samplers.langevin import Chain, Plan, constant_plan
from langevinrl.types import PyTree

# Fields that decide how an action is drawn and not what was learned.
CHANGEABLE = ("best_of", "steps_per_level", "num_levels", "num_steps", "flow_steps")
Changes = dict[str, int]


def is_known(agent: Any) -> bool:
    """Whether this agent's policy can be told as tables: one of the ten methods, not a new one."""
    return type(agent) in METHODS and not _draws_particles(agent)


def _draws_particles(agent: Any) -> bool:
    return isinstance(agent, NCLQL) and agent.sampler == "particles"


def describe(
    agent: Any, state: PyTree, box: Box | None = None, changes: Changes | None = None
) -> Policy:
    """The evaluation policy of one trained seed; `changes` are by the agent's field names.

    Actions are in `box`, or in the agent's own if none is given.
    """
    if _draws_particles(agent):
        raise UserError(
            "particles cannot be told as tables; those trained with sampler='langevin' can"
        )
    if not is_known(agent):
        known = ", ".join(kind.__name__ for kind in METHODS)
        raise UserError(f"{type(agent).__name__} cannot be told as tables; those that can: {known}")
    changes = dict(changes or {})
    _check(agent, changes)
    return METHODS[type(agent)](agent, state, box or Box.own(agent.spec), changes)


def _check(agent: Any, changes: Changes) -> None:
    """Refuses a change that the trained networks would not bear."""
    name = type(agent).__name__
    for field, value in changes.items():
        if field not in CHANGEABLE or not hasattr(agent, field):
            known = [known for known in CHANGEABLE if hasattr(agent, known)]
            raise UserError(
                f"{name} has no {field} to change; what can be changed: {', '.join(known)}"
            )
        if value < 1:
            raise UserError(f"{field} is {value}; expected at least 1")
    if isinstance(agent, SAC) and changes:
        raise UserError("SAC acts by the mode of its policy when evaluated: there is no best_of")
    denoises = hasattr(agent, "schedule") and getattr(agent, "sampler", "ddpm") == "ddpm"
    steps = changes.get("num_steps")
    if denoises and steps not in (None, agent.num_steps):
        raise UserError(
            f"num_steps is {steps}, but {name} was trained to denoise in {agent.num_steps} steps "
            "and knows no others: train with the number you want"
        )


def _choose_levels(agent: NCLQL, num_levels: int) -> np.ndarray:
    """`num_levels` of the levels the critics were trained at, the first and the last among them."""
    if not 2 <= num_levels <= agent.num_levels:
        raise UserError(
            f"num_levels is {num_levels}; expected from 2 to {agent.num_levels}: the critics know "
            "the levels they were trained at and none between them"
        )
    return np.rint(np.linspace(0, agent.num_levels - 1, num_levels)).astype(int)


def _nclql(agent: NCLQL, state: PyTree, box: Box, changes: Changes) -> Policy:
    levels = _choose_levels(agent, changes.get("num_levels", agent.num_levels))
    steps_per_level = changes.get("steps_per_level", agent.steps_per_level)
    chain = dataclasses.replace(agent, steps_per_level=steps_per_level).chain(state)
    kept = np.isin(np.asarray(chain.plan.level), levels)
    plan = Plan(chain.plan.step_size[kept], chain.plan.level[kept], chain.plan.deviations[kept])
    chain = chain._replace(plan=plan, noisy=agent.evaluation == "draw")
    params, embedding = state.critic.params, agent.critic.network.embedding
    assert embedding is not None
    params = {**params, "body": _critic_body(agent, state)}
    followed = agent.policy.scoring(params)
    field = network_tables(followed["body"], index_rows(followed, embedding, plan.level))
    judge = network_tables(
        params["body"], index_rows(params, embedding, jnp.asarray([agent.clean]))
    )
    if agent.score_critics == "both":  # the field's critics: only the level is another
        judge = {"rows": judge["rows"]}
    return _langevin(agent, chain, field, judge, box, changes)


def _lql(agent: LQL, state: PyTree, box: Box, changes: Changes) -> Policy:
    plan = constant_plan(changes.get("num_steps", agent.num_steps), agent.step_size)
    body = _critic_body(agent, state)
    field = network_tables(body, bias_rows(body, len(plan.step_size)))
    chain = agent.chain._replace(plan=plan)
    return _langevin(agent, chain, field, {"rows": field["rows"][:1]}, box, changes)


def _critic_body(agent: LQL | NCLQL, state: PyTree) -> PyTree:
    """The critics' perceptrons with what can be said in their weights: scaling and centring."""
    body = _scaled(state.critic.params["body"], state)
    return centre_features(body) if agent.critic_norm == "layer" else body


def _scaled(body: PyTree, state: PyTree) -> PyTree:
    """Perceptrons (M, ...) that take observations as the task has them."""
    stats = state.scales.obs
    return body if stats is None else fold_scaling(body, stats.mean, stats.deviation)


def _langevin(
    agent: LQL | NCLQL, chain: Chain, field: Arrays, judge: Arrays, box: Box,
    changes: Changes,
) -> Policy:  # fmt: skip
    """A walk along the gradient of the critics, which judge its end too."""
    size, bound = chain.plan.step_size, chain.bound
    facts = facts_of(
        agent, changes.get("best_of", agent.best_of), drift="gradient",
        normalise=chain.normalise, start=chain.start,
        start_scale={"uniform": bound, "normal": 1.0, "zero": 0.0}[chain.start],
        num_draws=1 + len(size), clip_guess=False, clip_step=chain.clip,
        norm="none" if agent.critic_norm == "none" else "rms",
    )  # fmt: skip
    drift, one = size / 2 * chain.inverse_temperature, jnp.ones_like(size)
    steps = (one, drift, one, 0 * one, chain.plan.deviations * chain.noisy)
    policy = build(facts, steps, field, judge, box)
    if chain.max_scores is not None:
        limits = size / 2 * chain.max_scores[chain.plan.level]
        policy.arrays["limits"] = np.asarray(limits, np.float32)
    return policy


def _sac(agent: SAC, state: PyTree, box: Box, changes: Changes) -> Policy:
    del changes
    params = state.actor.params
    inputs = [params["inputs"][0], jnp.zeros((agent.spec.act_dim, len(params["inputs"][0][0])))]
    body = _scaled(alone({"inputs": inputs, "layers": params["layers"]}), state)
    mean = slice(agent.spec.act_dim)
    facts = facts_of(
        agent, 1, drift="network", normalise=False, start="zero", start_scale=0.0,
        num_draws=0, clip_guess=False, clip_step=False, squash=True,
    )  # fmt: skip
    steps = np.array([0.0, 1.0, 1.0, 0.0, 0.0])[:, None]
    return build(facts, steps, network_tables(body, bias_rows(body, 1), mean), {}, box)


def _qsm(agent: QSM, state: PyTree, box: Box, changes: Changes) -> Policy:
    num_steps = changes.get("num_steps", agent.num_steps)
    facts = facts_of(
        agent, changes.get("best_of", agent.best_of), drift="network", normalise=False,
        start="normal", start_scale=1.0, num_draws=1 + num_steps, clip_guess=False, clip_step=True,
    )  # fmt: skip
    score, judge = alone(state.actor.params), _judge(state.critic.params)
    if agent.sampler == "langevin":
        size = 1 - jnp.arange(num_steps) / num_steps
        one = jnp.ones_like(size)
        steps = (one, size / 2, one, 0 * one, jnp.sqrt(size))
        field = network_tables(score["body"], bias_rows(score["body"], num_steps))
        return build(facts, steps, field, judge, box, key_use="fixed")
    schedule = make_schedule(agent.schedule, num_steps)
    beta, index = schedule.beta[::-1], jnp.arange(num_steps)[::-1]
    shrink, one = 1 / jnp.sqrt(1 - beta), jnp.ones_like(beta)
    drift = -beta / schedule.noise[::-1] * shrink
    steps = (shrink, drift, one, 0 * one, jnp.sqrt(beta) * (index > 0))
    assert agent.score.embedding is not None
    field = network_tables(score["body"], index_rows(score, agent.score.embedding, index))
    return build(facts, steps, field, judge, box, key_use="fixed", backwards=True)


def _mfp(agent: MFP, state: PyTree, box: Box, changes: Changes) -> Policy:
    times = jnp.linspace(0.0, 1.0, changes.get("flow_steps", agent.flow_steps) + 1)
    t, rho = times[:-1], times[1:]
    body = alone(state.actor.params)
    of_t, of_rho = (body["inputs"][i][None, :, 0] for i in (2, 3))  # (1, M, H)
    told = t[:, None, None] * of_t + rho[:, None, None] * of_rho
    facts = facts_of(
        agent, changes.get("best_of", agent.best_of), drift="network", normalise=False,
        start="normal", start_scale=1.0, num_draws=1, clip_guess=False, clip_step=False,
    )  # fmt: skip
    one = jnp.ones_like(t)
    steps = (one, rho - t, one, 0 * one, 0 * one)
    field = network_tables(body, told + bias_rows(body, len(t)))
    return build(facts, steps, field, _judge(state.critic.params), box)


def _denoising(agent: Any, state: PyTree, box: Box, changes: Changes) -> Policy:
    """The five diffusion policies: the network predicts noise, the clean guess is clipped."""
    slow = isinstance(agent, QVPO | SDAC | DPMD)  # these act by the target copy
    actor = alone(state.actor.target_params if slow else state.actor.params)
    backwards = jnp.arange(agent.num_steps)[::-1]
    schedule = agent.actor.schedule
    columns = (
        schedule.inverse_signal, -schedule.noise_to_signal, schedule.clean_weight,
        schedule.noisy_weight, schedule.std,
    )  # fmt: skip
    facts = facts_of(
        agent, changes.get("best_of", agent.best_of), drift="network", normalise=False,
        start="normal", start_scale=agent.start_std, num_draws=1 + agent.num_steps,
        clip_guess=True, clip_step=False,
    )  # fmt: skip
    rows = index_rows(actor, agent.actor.network.embedding, backwards)
    field, judge = network_tables(actor["body"], rows), _judge(state.critic.params)
    steps = [column[::-1] for column in columns]
    half = (
        "first_half" if isinstance(agent, DACER) else "whole"
    )  # DACER's exploring noise has the other
    return build(facts, steps, field, judge, box, key_use=half)


def _judge(params: PyTree) -> Arrays:
    """The critics that choose among candidates; of DACER's two outputs the mean."""
    return network_tables(params["body"], bias_rows(params["body"], 1), slice(1))


METHODS: dict[type[Any], Callable[[Any, PyTree, Box, Changes], Policy]] = {
    NCLQL: _nclql,
    LQL: _lql,
    SAC: _sac,
    QSM: _qsm,
    DIPO: _denoising,
    QVPO: _denoising,
    DACER: _denoising,
    MFP: _mfp,
    SDAC: _denoising,
    DPMD: _denoising,
}
