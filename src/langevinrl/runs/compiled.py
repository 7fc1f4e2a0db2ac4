"""An agent's methods with a leading seed axis and keys folded in on the device, compiled."""

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

# What a seed's randomness is spent on; each has a stream of its own.
STREAMS = {"init": 0, "act": 1, "update": 2, "warmup": 3, "diagnose": 4}


class Compiled(NamedTuple):
    """What a run calls."""

    init: Callable[[Key], PyTree]
    act: Callable[[Key, int, PyTree, np.ndarray], Array]
    random_action: Callable[[Key, int], Array]
    update: Callable[[Key, int, PyTree, Batch], Update]
    diagnose: Callable[[Key, int, PyTree, np.ndarray], dict[str, Array]]


def compile_agent(agent: Agent, num_envs: int, num_updates: int) -> Compiled:
    """The functions below for one agent, each compiled when first called."""
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
    """`function` with its first arguments fixed, compiled when first called.

    A second run of the same agent in this process, as after `learn` or with another seed, finds it
    compiled.  `donate` is the argument, of those left, whose memory may be reused.
    """
    try:
        return _compile_once(function, fixed, repr(fixed), donate)
    except TypeError:  # a field of the user's own agent that cannot be compared, as a list
        return jax.jit(partial(function, *fixed), donate_argnums=donate)


# Of a few runs: a process that makes many lets go of the oldest.  The words tell 1 from 1.0.
@lru_cache(maxsize=24)
def _compile_once(
    function: Callable[..., Any], fixed: tuple[Any, ...], words: str, donate: int | None
) -> Callable[..., Any]:
    return jax.jit(partial(function, *fixed), donate_argnums=donate)


def seed_keys(seeds: Sequence[int]) -> Key:
    """The key that all of a seed's randomness comes from, one for each of S seeds."""
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))


def init(agent: Agent, seeds: Key) -> PyTree:
    """Fresh states, (S, ...)."""
    return over_seeds(agent.init, len(seeds))(fold(seeds, "init", 0))


def act(agent: Agent, seeds: Key, step: Array | int, state: PyTree, obs: Array) -> Array:
    """Exploring actions (S, E, A) for observations (S, E, O)."""
    explore = partial(agent.act, explore=True)
    return over_seeds(explore, len(seeds))(state, obs, fold(seeds, "act", step))


def random_action(agent: Agent, num_envs: int, seeds: Key, step: Array | int) -> Array:
    """Actions (S, E, A) uniform over the box."""
    shape, bound = (num_envs, agent.spec.act_dim), agent.spec.act_bound

    def uniform(key: Key) -> Array:
        return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

    return over_seeds(uniform, len(seeds))(fold(seeds, "warmup", step))


def update(
    agent: Agent, num_updates: int, seeds: Key, step: Array | int, state: PyTree, batch: Batch
) -> Update:
    """`num_updates` updates in order on as many batches, (S, updates x B, ...) in one.

    Reuses the memory of `state`.  Metrics are those of the last update.
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
        if rewrite is not None:  # a row drawn again later is found as it was left here
            columns = jax.tree.map(partial(_write_rows, parts.row, part.row), columns, rewrite)
        return (state, columns), (metrics, rewrite)

    parts = jax.tree.map(lambda x: x.reshape(num_updates, -1, *x.shape[1:]), batch)
    turns = (jnp.arange(num_updates), parts, jax.random.split(key, num_updates))
    (state, _), (metrics, rewrite) = jax.lax.scan(once, (state, parts.extra), turns)
    rewrite = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rewrite)
    return Update(state, jax.tree.map(lambda x: x[-1], metrics), rewrite)


def _write_rows(rows: Array, written: Array, column: Array, values: Array) -> Array:
    """The column (updates, B, ...) of `rows` (updates, B), with `values` at rows `written` (B,)."""
    same = rows[..., None] == written[None, None]
    fresh = values[same.argmax(axis=-1)]  # a row is improved alike wherever it stands in a batch
    found = same.any(axis=-1).reshape(*rows.shape, *[1] * (column.ndim - rows.ndim))
    return jnp.where(found, fresh, column)


def over_seeds(function: Callable[..., Any], num_seeds: int) -> Callable[..., Any]:
    """`function` with a leading seed axis.

    One seed is squeezed, not mapped.  On a CPU several run one after the other: as fast as a
    batched product, and work that is not due stays undone, while under `vmap` both branches of a
    condition are computed.
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
    """A key for each seed, this stream and this step."""

    def fold(seed: Key) -> Key:
        return jax.random.fold_in(jax.random.fold_in(seed, STREAMS[stream]), step)

    return jax.vmap(fold)(seeds)
