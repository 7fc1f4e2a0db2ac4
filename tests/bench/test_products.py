"""Matrix products found in a computation, and the program that computes them alone."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp

from langevinrl.bench.products import Product, compile_products, find_products
from langevinrl.types import Array

PLAIN_AXES = (((1,), (0,)), ((), ()))


def test_products_in_loops_and_calls_are_counted() -> None:
    a, b = jnp.ones((3, 4)), jnp.ones((4, 4))

    @jax.jit
    def thrice(x: Array) -> Array:
        return jax.lax.scan(lambda y, _: (jnp.tanh(y @ b), None), x, None, length=3)[0]

    found = find_products(lambda x: thrice(x) @ jnp.ones((4, 2)), a)
    assert found == {
        Product((3, 4), (4, 4), PLAIN_AXES): 3,
        Product((3, 4), (4, 2), PLAIN_AXES): 1,
    }
    assert [product.flops for product in found] == [2 * 3 * 4 * 4, 2 * 3 * 4 * 2]


def test_products_of_a_gradient_and_of_batches_are_found() -> None:
    weights, x = jnp.ones((2, 4, 5)), jnp.ones((2, 3, 4))

    def loss(weights: Array) -> Array:
        return jnp.square(jnp.einsum("mbi,mio->mbo", x, weights)).sum()

    found = find_products(jax.grad(loss), weights)
    assert found.total() == 2
    assert {product.flops for product in found} == {2 * 2 * 3 * 4 * 5}


def test_only_the_most_expensive_branch_counts() -> None:
    def either(x: Array) -> Array:
        wide, narrow = jnp.ones((4, 9)), jnp.ones((4, 1))
        return jax.lax.cond(
            x.sum() > 0, lambda y: (y @ wide).sum(), lambda y: (y @ narrow).sum(), x
        )

    assert find_products(either, jnp.ones((3, 4))) == {Product((3, 4), (4, 9), PLAIN_AXES): 1}


def test_program_computes_every_product() -> None:
    product = Product((3, 4), (4, 2), PLAIN_AXES)
    once, twice = (compile_products(Counter({product: count}))() for count in (1, 2))
    assert once != 0 and jnp.allclose(twice, 2 * once)
