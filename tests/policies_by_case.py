"""Small agents of every method with weights that differ everywhere, and their evaluation."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents.slope import Slope
from langevinrl.policies.chain import keyed_noise
from langevinrl.policies.methods import describe
from langevinrl.policies.tables import Box, Policy
from langevinrl.registry import METHODS
from langevinrl.runs.evaluate import observation_seed, policy
from langevinrl.types import Spec

SPEC = Spec(5, 3, act_bound=2.0)
BOX = Box(np.float32([1.0, 0.0, -2.0]), np.float32([0.5, 1.0, 3.0]))
OBS = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
SEED = observation_seed(OBS)
SMOOTH: dict[str, Any] = {"inverse_temperature": 10.0, "normalise": False}
SCALED: dict[str, Any] = {"obs_norm": True, "critic_norm": "layer"}
FIRST: dict[str, Any] = SCALED | {"num_levels": 4, "spread": 0.2, "score_critics": "first"}
# Every method, and every way a method has of drawing.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "nclql": ("nclql", {"best_of": 3, "num_levels": 4}),
    "nclql smooth": ("nclql", SMOOTH | {"num_levels": 3, "start": "normal", "clip": False}),
    "nclql spread": ("nclql", {"best_of": 3, "num_levels": 4, "steps_per_level": 1, "spread": 0.2}),
    "nclql climb": ("nclql", {"num_levels": 4, "spread": 0.2, "evaluation": "climb"}),
    "nclql first": ("nclql", FIRST),
    "nclql first of three": ("nclql", FIRST | {"best_of": 3, "steps_per_level": 1}),
    "nclql layer": ("nclql", SMOOTH | SCALED | {"num_levels": 3, "best_of": 3}),
    "lql": ("lql", {"num_steps": 5}),
    "lql smooth": ("lql", SMOOTH | {"num_steps": 5, "best_of": 3, "start": "uniform"}),
    "lql rms": ("lql", SMOOTH | {"num_steps": 5, "best_of": 3, "critic_norm": "rms"}),
    "sac": ("sac", {}),
    "sac scaled": ("sac", SCALED | {"best_of": 3}),
    "qsm": ("qsm", {"num_steps": 5, "best_of": 3}),
    "qsm ddpm": ("qsm", {"num_steps": 5, "best_of": 3, "sampler": "ddpm"}),
    "dipo": ("dipo", {"num_steps": 5}),
    "qvpo": ("qvpo", {"num_steps": 5, "best_of": 3}),
    "dacer": ("dacer", {"num_steps": 5, "best_of": 3}),
    "mfp": ("mfp", {"flow_steps": 3, "best_of": 3}),
    "sdac": ("sdac", {"num_steps": 5, "best_of": 3, "schedule": "cosine"}),
    "dpmd": ("dpmd", {"num_steps": 5, "best_of": 3}),
}


@cache
def make(case: str) -> tuple[Any, Any]:
    """A case's agent and state; target copies and biases are numbers of their own."""
    name, fields = CASES[case]
    agent = METHODS[name].load()(SPEC, hidden=(16, 12), **fields)
    state = jax.jit(agent.init)(jax.random.key(0))
    rng = np.random.default_rng(0)

    def stir(leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return jnp.asarray(leaf + 0.1 * rng.normal(size=leaf.shape), jnp.float32)

    state = jax.tree.map(stir, state)
    if "obs_norm" in fields:
        mean, variance = rng.normal(size=(2, SPEC.obs_dim)).astype(np.float32)
        stats = state.scales.obs._replace(mean=jnp.asarray(mean), variance=jnp.exp(variance))
        state = state._replace(scales=state.scales._replace(obs=stats))
    if "spread" in fields:
        state = state._replace(slope=Slope(jnp.asarray(0.3), jnp.asarray(1.0)))
    return agent, state


@cache
def described(case: str) -> Policy:
    return describe(*make(case), BOX)


@cache
def expected(case: str) -> np.ndarray:
    """What an evaluation does with OBS, in the task's units."""
    agent, state = make(case)
    drawn = jax.jit(partial(policy, agent))(state, OBS, SEED)
    return BOX.centre + BOX.stretch * np.asarray(drawn)


@cache
def noise_of(case: str) -> np.ndarray:
    """The noise behind those actions."""
    return np.asarray(keyed_noise(described(case), SEED))
