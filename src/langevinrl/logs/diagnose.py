"""Statistics of an agent's sampler, computed from traces of its chain."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.types import Array, Key, PyTree

NUM_OBSERVATIONS = 8  # per seed, evenly spaced over the replay buffer
NUM_REPEATS = 8  # samples for each of them
AT_THE_EDGE = 1 - 1e-6  # a coordinate beyond this share of the action bound counts as clipped


def diagnose(agent: Agent, state: PyTree, obs: Array, key: Key) -> dict[str, Array]:
    """Return scalar statistics of one seed's sampler at observations (B, O).

    Distances and standard deviations are divided by the action bound, so that tasks compare.
    """
    repeated = jnp.repeat(obs, NUM_REPEATS, axis=0)
    noise = agent.noise(key, len(repeated))
    path = agent.trace(state, repeated, noise)  # (steps + 1, B x repeats, A)
    bound = agent.spec.act_bound
    drawn = path[-1].reshape(len(obs), NUM_REPEATS, -1)
    found = {
        "sampler/clipped": (jnp.abs(drawn) >= AT_THE_EDGE * bound).mean(),
        "sampler/spread": drawn.std(axis=1).mean() / bound,
        "sampler/movement": _distance(path[0], path[-1]) / bound,
    }
    num_levels = getattr(agent, "num_levels", 1)
    if num_levels > 1:
        starts = path[:: (len(path) - 1) // num_levels]  # of each level, and the end of the chain
        for level in range(num_levels):
            moved = _distance(starts[level], starts[level + 1]) / bound
            found[f"sampler/movement/level_{level:02d}"] = moved
    trace_scores = getattr(agent, "trace_scores", None)  # optional: not every chain has a score
    scores = trace_scores(state, repeated, path) if trace_scores else None
    if scores is not None:
        found["sampler/score_norm"] = jnp.linalg.norm(scores, axis=-1).mean()
    return found


def _distance(start: Array, end: Array) -> Array:
    """Return the mean Euclidean distance between two sets of actions (B, A)."""
    return jnp.linalg.norm(end - start, axis=-1).mean()


def pick_observations(obs: np.ndarray, size: int) -> np.ndarray:
    """Return observations (S, B, O) evenly spaced over the first `size` rows of a buffer."""
    return obs[:, np.linspace(0, size - 1, NUM_OBSERVATIONS).astype(int)]


def rows_by_seed(found: dict[str, Array]) -> list[dict[str, float]]:
    """Split statistics of shape (S,) into one table of floats per seed, in order of name."""
    columns = {name: np.asarray(found[name]).tolist() for name in sorted(found)}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
