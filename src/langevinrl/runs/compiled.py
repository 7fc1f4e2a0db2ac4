"""Compiled functions of an agent, with a leading seed axis and keys derived on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.logs import diagnose as diagnosis
from langevinrl.types import Array, Batch, Key, PyTree, Update

# Independent random streams of a seed.
STREAMS = {"init": 0, "act": 1, "update": 2, "warmup": 3, "diagnose": 4}


class Compiled(NamedTuple):
    """Compiled functions that a run calls."""

    init: Callable[[Key], PyTree]
    act: Callable[[Key, int, PyTree, np.ndarray], Array]
    random_action: Callable[[Key, int], Array]
    update: Callable[[Key, int, PyTree, Batch], Update]
    diagnose: Callable[[Key, int, PyTree, np.ndarray], dict[str, Array]]


def compile_agent(agent: Agent, num_envs: int, num_updates: int) -> Compiled:
    """Return the functions below for one agent, each compiled at its first call."""
    return Compiled(
        compile_once(init, agent),
        compile_once(act, agent),
        compile_once(random_action, agent, num_envs),
        compile_once(update, agent, num_updates, donate=2),
        compile_once(diagnose, agent),
    )


def compile_once(
    function: Callable[..., Any], *fixed: Any, donate: int | None = None
) -> Callable[..., Any]:
    """Return `function` with its first arguments fixed, compiled at its first call.

    A second run of an equal agent in this process reuses the compiled program. `donate` is the
    index of the remaining argument whose memory may be reused.
    """
    try:
        return _compile_once(function, fixed, repr(fixed), donate)
    except TypeError:  # an agent with an unhashable field, such as a list
        return jax.jit(partial(function, *fixed), donate_argnums=donate)


# The size bounds the memory of a process with many runs. `words` tells 1 from 1.0.
@lru_cache(maxsize=24)
def _compile_once(
    function: Callable[..., Any], fixed: tuple[Any, ...], words: str, donate: int | None
) -> Callable[..., Any]:
    return jax.jit(partial(function, *fixed), donate_argnums=donate)


def seed_keys(seeds: Sequence[int]) -> Key:
    """Return the root key of each of S seeds."""
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))


def init(agent: Agent, seeds: Key) -> PyTree:
    """Return fresh states (S, ...)."""
    return over_seeds(agent.init, len(seeds))(fold(seeds, "init", 0))


def act(agent: Agent, seeds: Key, step: Array | int, state: PyTree, obs: Array) -> Array:
    """Return exploring actions (S, E, A) for observations (S, E, O)."""

    def explore(state: PyTree, obs: Array, key: Key) -> Array:
        return agent.policy(state, obs, agent.noise(key, len(obs)), explore=True)

    return over_seeds(explore, len(seeds))(state, obs, fold(seeds, "act", step))


def random_action(agent: Agent, num_envs: int, seeds: Key, step: Array | int) -> Array:
    """Return actions (S, E, A) uniform over the box."""
    shape, bound = (num_envs, agent.spec.act_dim), agent.spec.act_bound

    def uniform(key: Key) -> Array:
        return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

    return over_seeds(uniform, len(seeds))(fold(seeds, "warmup", step))


def update(
    agent: Agent, num_updates: int, seeds: Key, step: Array | int, state: PyTree, batch: Batch
) -> Update:
    """Do `num_updates` updates in order on a batch of (S, updates x B, ...).

    Reuses the memory of `state`. Returns the metrics of the last update.
    """
    several = agent.update if num_updates == 1 else partial(_update_in_order, agent, num_updates)
    return Update(*over_seeds(several, len(seeds))(state, batch, fold(seeds, "update", step)))


def diagnose(
    agent: Agent, seeds: Key, step: Array | int, state: PyTree, obs: Array
) -> dict[str, Array]:
    """Statistics of every seed's sampler, (S,) each, at observations (S, B, O)."""
    one = partial(diagnosis.diagnose, agent)
    return over_seeds(one, len(seeds))(state, obs, fold(seeds, "diagnose", step))


def _update_in_order(
    agent: Agent, num_updates: int, state: PyTree, batch: Batch, key: Key
) -> Update:
    def once(
        carry: tuple[PyTree, dict[str, Array]], now: tuple[Array, Batch, Key]
    ) -> tuple[tuple[PyTree, dict[str, Array]], tuple[Any, Any]]:
        state, columns = carry
        turn, part, key = now
        part = part._replace(extra=jax.tree.map(lambda x: x[turn], columns))
        state, metrics, rewrite = agent.update(state, part, key)
        if rewrite is not None:  # later updates see the rewritten rows
            columns = jax.tree.map(partial(_write_rows, parts.row, part.row), columns, rewrite)
        return (state, columns), (metrics, rewrite)

    parts = jax.tree.map(lambda x: x.reshape(num_updates, -1, *x.shape[1:]), batch)
    turns = (jnp.arange(num_updates), parts, jax.random.split(key, num_updates))
    (state, _), (metrics, rewrite) = jax.lax.scan(once, (state, parts.extra), turns)
    rewrite = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rewrite)
    return Update(state, jax.tree.map(lambda x: x[-1], metrics), rewrite)


def _write_rows(rows: Array, written: Array, column: Array, values: Array) -> Array:
    """Write `values` for rows `written` (B,) into the column (updates, B, ...) of `rows`."""
    same = rows[..., None] == written[None, None]
    fresh = values[same.argmax(axis=-1)]  # equal rows of a batch have equal values
    found = same.any(axis=-1).reshape(*rows.shape, *[1] * (column.ndim - rows.ndim))
    return jnp.where(found, fresh, column)


def over_seeds(function: Callable[..., Any], num_seeds: int) -> Callable[..., Any]:
    """Return `function` with a leading seed axis.

    A single seed is squeezed. On a CPU several seeds run one after the other: that is as fast as
    batched products, and `lax.cond` skips work that is not due, which under `vmap` it does not.
    """
    if num_seeds > 1 and jax.default_backend() == "cpu":
        return lambda *args: jax.lax.map(lambda one: function(*one), args)
    if num_seeds > 1:
        return jax.vmap(function)

    def one(*args: Any) -> Any:
        alone = function(*jax.tree.map(lambda x: x[0], args))
        return jax.tree.map(lambda x: x[None], alone)

    return one


def fold(seeds: Key, stream: str, step: Array | int) -> Key:
    """Return a key for each seed, for this stream and step."""

    def fold(seed: Key) -> Key:
        return jax.random.fold_in(jax.random.fold_in(seed, STREAMS[stream]), step)

    return jax.vmap(fold)(seeds)
