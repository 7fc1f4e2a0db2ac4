"""An agent's methods, compiled, with a leading seed axis and keys folded in on the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.types import Array, Batch, Key, PyTree, Update

PURPOSES = {"init": 0, "act": 1, "update": 2, "warmup": 3}


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


class Compiled:
    """The agent's three methods with a leading seed axis, keys folded in on the device."""

    def __init__(self, agent: Agent, seeds: list[int], num_envs: int, num_updates: int) -> None:
        self.roots = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
        spec, num_seeds = agent.spec, len(seeds)

        def act(state: PyTree, obs: Array, key: Key) -> Array:
            return agent.act(state, obs, key, explore=True)

        def update(state: PyTree, batches: Batch, key: Key) -> Update:
            if num_updates == 1:
                return agent.update(state, batches, key)

            def once(state: PyTree, now: tuple[Batch, Key]) -> tuple[PyTree, tuple[Any, Any]]:
                state, metrics, rewrite = agent.update(state, *now)
                return state, (metrics, rewrite)

            keys = jax.random.split(key, num_updates)
            split = jax.tree.map(lambda x: x.reshape(num_updates, -1, *x.shape[1:]), batches)
            state, (metrics, rewrite) = jax.lax.scan(once, state, (split, keys))
            rewrite = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rewrite)
            return Update(state, jax.tree.map(lambda x: x[-1], metrics), rewrite)

        def random_action(key: Key) -> Array:
            shape = (num_envs, spec.act_dim)
            return jax.random.uniform(key, shape, minval=-spec.act_bound, maxval=spec.act_bound)

        def keyed(function: Callable[..., Any], purpose: str) -> Callable[..., Any]:
            def with_keys(step: Array, roots: Key, *args: Any) -> Any:
                fold = partial(jax.random.fold_in, data=step)
                keys = jax.vmap(lambda root: fold(jax.random.fold_in(root, PURPOSES[purpose])))(
                    roots
                )
                return over_seeds(function, num_seeds)(*args, keys)

            return with_keys

        self._init = jax.jit(keyed(agent.init, "init"))
        self._act = jax.jit(keyed(act, "act"))
        self._update = jax.jit(keyed(update, "update"), donate_argnums=2)
        self._random = jax.jit(keyed(random_action, "warmup"))

    def init(self) -> PyTree:
        return self._init(0, self.roots)

    def act(self, step: int, state: PyTree, obs: np.ndarray) -> np.ndarray:
        return np.asarray(self._act(step, self.roots, state, obs))

    def random_action(self, step: int) -> np.ndarray:
        return np.asarray(self._random(step, self.roots))

    def update(self, step: int, state: PyTree, batch: Batch) -> Update:
        return Update(*self._update(step, self.roots, state, batch))
