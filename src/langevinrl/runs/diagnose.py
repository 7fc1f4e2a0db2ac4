"""How an agent samples just now, in a few numbers: read from traces, apart from training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.replay.buffer import Replay
from langevinrl.runs import compiled
from langevinrl.types import Array, Key, PyTree

NUM_OBSERVATIONS = 8  # per seed, spread evenly over what replay holds
NUM_REPEATS = 8  # samples for each of them
AT_THE_EDGE = 1 - 1e-6  # of the box's half-width: a coordinate this far out counts as clipped


def diagnose(agent: Agent, state: PyTree, obs: Array, key: Key) -> dict[str, Array]:
    """Scalars of one seed's sampler at observations (B, O).

    Distances and spreads are in half-widths of the action box, so that tasks can be compared.
    """
    repeated = jnp.repeat(obs, NUM_REPEATS, axis=0)
    path = agent.trace(state, repeated, key)  # (steps + 1, B x repeats, A)
    bound = agent.spec.act_bound
    drawn = path[-1].reshape(len(obs), NUM_REPEATS, -1)
    found = {
        "sampler/clipped": (jnp.abs(drawn) >= AT_THE_EDGE * bound).mean(),
        "sampler/spread": drawn.std(axis=1).mean() / bound,
        "sampler/movement": _distance(path[0], path[-1]) / bound,
    }
    walks = getattr(agent, "sampler", "langevin") == "langevin"  # particles walk no ladder
    num_levels = getattr(agent, "num_levels", 1) if walks else 1
    if num_levels > 1:
        turns = path[:: (len(path) - 1) // num_levels]  # where each level begins, and the end
        for level in range(num_levels):
            moved = _distance(turns[level], turns[level + 1]) / bound
            found[f"sampler/movement/level_{level:02d}"] = moved
    # An agent need not have levels or a slope that its chain follows.
    slope = getattr(agent, "trace_scores", None)
    scores = slope(state, repeated, path) if slope else None
    if scores is not None:
        found["sampler/score_norm"] = jnp.linalg.norm(scores, axis=-1).mean()
    return found


def _distance(start: Array, end: Array) -> Array:
    """Mean Euclidean distance between two sets of actions (B, A)."""
    return jnp.linalg.norm(end - start, axis=-1).mean()


class Diagnosis:
    """`diagnose` for every seed of a run, compiled when first asked for.

    It has a stream of random numbers of its own and changes nothing, so that a run learns the same
    with and without it.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._compiled: Callable[..., dict[str, Any]] = compiled.compile_once(_over_seeds, agent)

    def __call__(
        self, seeds: Key, step: int, state: PyTree, replay: Replay
    ) -> list[dict[str, float]]:
        """The numbers of each seed."""
        found = self._compiled(seeds, step, state, spread_observations(replay))
        table = {name: np.asarray(values) for name, values in sorted(found.items())}
        return [{name: float(v[s]) for name, v in table.items()} for s in range(len(seeds))]


def spread_observations(replay: Replay) -> np.ndarray:
    """Observations (S, B, O) spread evenly over the filled part of replay."""
    rows = np.linspace(0, replay.size - 1, NUM_OBSERVATIONS).astype(int)
    return replay.rings["obs"][:, rows]


def _over_seeds(
    agent: Agent, seeds: Key, step: Array | int, state: PyTree, obs: Array
) -> dict[str, Array]:
    keys = compiled.fold(seeds, "diagnose", step)
    return compiled.over_seeds(partial(diagnose, agent), len(seeds))(state, obs, keys)
