"""Matrix products of a computation, compiled alone: what the rest of it is compared with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from langevinrl.types import Array


class Product(NamedTuple):
    """Shapes of a matrix product, and the axes it sums over and maps over."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    axes: Any  # dimension numbers of lax.dot_general

    @property
    def flops(self) -> int:
        (summed, _), (mapped, _) = self.axes
        shared = math.prod(self.left[axis] for axis in (*summed, *mapped))
        return 2 * math.prod(self.left) * math.prod(self.right) // shared

    def multiply(self, left: Array, right: Array) -> Array:
        return jax.lax.dot_general(left, right, self.axes)


def find_products(function: Callable[..., Any], *args: Any) -> Counter[Product]:
    """Return the matrix products of a call, and how often each is computed."""
    return Counter(_products(jax.make_jaxpr(function)(*args).jaxpr))


def _products(jaxpr: Jaxpr) -> Iterator[Product]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            left, right = (_shape(variable.aval) for variable in equation.invars)
            yield Product(left, right, equation.params["dimension_numbers"])
        inner = [list(_products(branch)) for branch in _inner(equation.params)]
        if equation.primitive.name == "cond":  # the most expensive branch
            inner = [max(inner, key=lambda found: sum(p.flops for p in found))]
        for found in inner:
            yield from found * equation.params.get("length", 1)  # of a scan


def _shape(aval: Any) -> tuple[int, ...]:
    return aval.shape


def _inner(params: dict[str, Any]) -> Iterator[Jaxpr]:
    for value in params.values():
        for each in value if isinstance(value, tuple | list) else [value]:
            if isinstance(each, ClosedJaxpr):
                yield each.jaxpr
            elif isinstance(each, Jaxpr):
                yield each


def compile_products(products: Counter[Product]) -> Callable[[], Array]:
    """Compile a program that computes the products one after the other, and little else."""
    barrier: Any = jax.lax.optimization_barrier
    key = jax.random.key(0)
    pairs = [
        [jax.random.normal(key, shape) for shape in (product.left, product.right)]
        for product in products
    ]

    def repeated(product: Product, left: Array, right: Array, count: int, total: Array) -> Array:
        def step(total: Array, _: None) -> tuple[Array, None]:
            # Barriers make each product wait for the one before it, and compute all of it.
            operand, total = barrier((left, total))
            result = barrier(product.multiply(operand, right))
            return total + result[(0,) * result.ndim], None

        return jax.lax.scan(step, total, None, length=count)[0]

    def compute(pairs: list[list[Array]]) -> Array:
        total = jnp.zeros(())
        for (product, count), (left, right) in zip(products.items(), pairs, strict=True):
            total = repeated(product, left, right, count, total)
        return total

    compiled = jax.jit(compute).lower(pairs).compile()
    return lambda: compiled(pairs)
