"""What may be changed when a policy is exported, and what is refused."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policies_by_case import BOX, OBS, SEED, make

from langevinrl.errors import UserError
from langevinrl.policies.chain import keyed_noise
from langevinrl.policies.fast import FastPolicy
from langevinrl.policies.methods import describe, is_known
from langevinrl.runs.evaluate import policy
from langevinrl.samplers.langevin import Chain, Plan, draw


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("nclql", {"best_of": 1, "steps_per_level": 3}),
        ("lql", {"best_of": 2, "num_steps": 8}),
        ("qsm", {"num_steps": 3}),
        ("mfp", {"flow_steps": 1}),
        ("dpmd", {"best_of": 1}),
    ],
)
def test_a_change_is_the_agent_with_that_field(case: str, changes: dict[str, int]) -> None:
    agent, state = make(case)
    other: Any = dataclasses.replace(agent, **changes)
    drawn = jax.jit(partial(policy, other))(state, OBS, SEED)
    fast = FastPolicy(describe(agent, state, BOX, changes))
    want = BOX.centre + BOX.stretch * np.asarray(drawn)
    np.testing.assert_allclose(fast(OBS, SEED), want, rtol=0, atol=1e-4)


def test_fewer_levels_are_some_of_the_trained_ones() -> None:
    """Three of four levels: the first, one between and the clean one, each told its own index."""
    agent, state = make("nclql smooth")
    agent = dataclasses.replace(agent, num_levels=4)
    short = describe(agent, state, BOX, {"num_levels": 3, "best_of": 1})
    levels = np.array([0, 0, 2, 2, 3, 3])
    sizes = agent.step_size * (agent.sigmas[levels] / agent.sigmas[-1]) ** 2
    np.testing.assert_allclose(short.arrays["steps"][:, 4], np.sqrt(sizes), rtol=1e-5)

    plan = Plan(jnp.asarray(sizes), jnp.asarray(levels))
    chain = Chain(plan, agent.inverse_temperature, 2.0, agent.start, agent.clip, agent.normalise)
    noise = keyed_noise(short, SEED)
    for row in range(2):
        value = partial(agent.critic.apply, state.critic.params, OBS[row : row + 1])
        key = jax.random.key(SEED[row])
        want = draw(value, (1, agent.spec.act_dim), chain, key)
        got = FastPolicy(short).with_noise(OBS[row : row + 1], noise[row : row + 1])
        np.testing.assert_allclose(got, BOX.centre + BOX.stretch * np.asarray(want), atol=1e-4)


@pytest.mark.parametrize(
    ("case", "changes", "words"),
    [
        ("nclql", {"num_levels": 5}, "from 2 to 4: the critics know the levels"),
        ("nclql", {"num_levels": 1}, "from 2 to 4"),
        ("nclql", {"steps_per_level": 0}, "steps_per_level is 0; expected at least 1"),
        ("nclql", {"num_steps": 3}, "NCLQL has no num_steps.*best_of, steps_per_level, num_levels"),
        ("lql", {"inverse_temperature": 3}, "LQL has no inverse_temperature to change"),
        ("dacer", {"num_steps": 3}, "trained to denoise in 5 steps"),
        ("qsm ddpm", {"num_steps": 3}, "trained to denoise in 5 steps"),
        ("sac", {"best_of": 4}, "SAC acts by the mode"),
    ],
)
def test_what_the_networks_would_not_bear_is_refused(
    case: str, changes: dict[str, int], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        describe(*make(case), BOX, changes)


def test_a_method_that_is_not_known_here_is_named() -> None:
    with pytest.raises(UserError, match="str cannot be told as tables; those that can: NCLQL, "):
        describe("an agent of one's own", None, BOX)


def test_particles_are_no_chain() -> None:
    agent, state = make("nclql")
    drawn = dataclasses.replace(agent, sampler="particles")
    assert is_known(agent) and not is_known(drawn)
    with pytest.raises(UserError, match="particles cannot be told as tables"):
        describe(drawn, state, BOX)
