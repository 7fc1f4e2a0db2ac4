"""Median times of interleaved calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from langevinrl.types import Array, Batch, PyTree


class Timer:
    """Timer of several functions, interleaved so that a noisy machine affects all equally."""

    def __init__(self, calls: dict[str, Callable[[], Any]]) -> None:
        self.calls = calls
        self.seconds: dict[str, list[float]] = {name: [] for name in calls}

    def run(self, repeats: int) -> dict[str, float]:
        """Return the median milliseconds of each function."""
        for call in self.calls.values():
            jax.block_until_ready(call())  # type: ignore[no-untyped-call]
        for _ in range(repeats):
            for name, call in self.calls.items():
                began = time.perf_counter()
                jax.block_until_ready(call())  # type: ignore[no-untyped-call]
                self.seconds[name].append(time.perf_counter() - began)
        return {name: 1e3 * float(np.median(s)) for name, s in self.seconds.items()}


class RepeatedUpdate:
    """Repeated update of its own result, since it reuses its input's memory.

    Two at a time: many methods update the policy at every second update only.
    """

    num_calls = 2

    def __init__(self, update: Any, state: PyTree, batch: Batch) -> None:
        self.update, self.state, self.batch = update, state, batch
        self.key = jax.random.key(1)

    def __call__(self) -> PyTree:
        for _ in range(self.num_calls):
            self.state = self.update(self.state, self.batch, self.key).state
        return self.state


class RepeatedAction:
    """Several actions in a row, so that the cold cache of the first matters little."""

    num_calls = 5

    def __init__(self, act: Any, state: PyTree, obs: Array) -> None:
        self.act, self.state, self.obs = act, state, obs
        self.key = jax.random.key(2)

    def __call__(self) -> Array:
        for _ in range(self.num_calls):
            action: Array = self.act(self.state, self.obs, self.key).block_until_ready()
        return action


def gemm_rate(repeats: int) -> float:
    """Measure GFLOP/s of 256 x 256 matrix products, the size that networks use."""
    size, length = 256, 64
    x = jax.random.normal(jax.random.key(0), (size, size)) / size

    @jax.jit
    def chain(x: Array) -> Array:
        return jax.lax.scan(lambda y, _: (y @ x, None), x, None, length=length)[0]

    milliseconds = Timer({"gemm": lambda: chain(x)}).run(repeats)["gemm"]
    return 2 * size**3 * length / milliseconds / 1e6
