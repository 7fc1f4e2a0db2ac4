"""Networks: frozen dataclasses with a pure `init` and `apply` over pytrees."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key, PyTree, Spec

Activation: TypeAlias = Literal["mish", "gelu", "relu"]


@jax.custom_jvp
def mish(x: Array) -> Array:
    """Return x tanh(softplus x), computed from a single exponential for speed."""
    return _mish_and_derivative(x)[0]


@mish.defjvp
def _mish_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value, derivative = _mish_and_derivative(primals[0])
    return value, derivative * tangents[0]


def _mish_and_derivative(x: Array) -> tuple[Array, Array]:
    # Above 20 the gate is 1 in float32; the limit keeps e squared finite.
    e = jnp.exp(jnp.minimum(x, 20.0))
    n = e * (e + 2.0)
    gate = n / (n + 2.0)
    return x * gate, gate + x * (4.0 * e * (e + 1.0) / jnp.square(n + 2.0))


@jax.custom_jvp
def gelu(x: Array) -> Array:
    """Return x Φ(x); its derivative reuses Φ."""
    return x * _normal_cdf(x)


@gelu.defjvp
def _gelu_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,) = primals
    cdf, density = _normal_cdf(x), jnp.exp(-0.5 * jnp.square(x)) / (2 * jnp.pi) ** 0.5
    return x * cdf, (cdf + x * density) * tangents[0]


def _normal_cdf(x: Array) -> Array:
    # erf is cheaper than erfc, which is more accurate only where x Φ(x) is close to zero.
    return 0.5 * (1.0 + jax.lax.erf(x / 2**0.5))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "mish": mish,
    "gelu": gelu,
    "relu": jax.nn.relu,
}


@dataclass(frozen=True)
class MLP:
    """Multilayer perceptron over several inputs, as if they were concatenated.

    The first layer is a sum of one product per input. In a sampling chain the compiler then moves
    the product with the observation out of the loop, and candidates share it.
    """

    inputs: tuple[int, ...]
    outputs: int
    hidden: tuple[int, ...]
    activation: Activation

    def init(self, key: Key) -> PyTree:
        widths = (sum(self.inputs), *self.hidden, self.outputs)
        keys = jax.random.split(key, len(widths) - 1)
        layers = [
            {"weight": _truncated_normal(k, fan_in, fan_out), "bias": jnp.zeros(fan_out)}
            for k, fan_in, fan_out in zip(keys, widths[:-1], widths[1:], strict=True)
        ]
        first = layers[0].pop("weight")
        edges = [sum(self.inputs[:i]) for i in range(1, len(self.inputs))]
        return {"inputs": jnp.split(first, edges), "layers": layers}

    def apply(self, params: PyTree, *inputs: Array) -> Array:
        """Apply to inputs (..., size); leading axes broadcast, such as (B, O) with (N, B, A)."""
        products = [x @ weight for x, weight in zip(inputs, params["inputs"], strict=True)]
        rank = max(product.ndim for product in products)
        x = functools.reduce(jnp.add, [add_leading_axes(product, rank) for product in products])
        for i, layer in enumerate(params["layers"]):
            if i:
                x = ACTIVATIONS[self.activation](x)
                x = x @ layer["weight"]
            x = x + add_leading_axes(layer["bias"], rank)
        return x


def add_leading_axes(x: Array, rank: int) -> Array:
    """Add leading axes of size one up to `rank`, which makes broadcasting explicit."""
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def _truncated_normal(key: Key, fan_in: int, fan_out: int) -> Array:
    # Truncated at two standard deviations and not rescaled, as in the released code.
    return jax.random.truncated_normal(key, -2.0, 2.0, (fan_in, fan_out)) / fan_in**0.5


def sinusoid(t: Array, size: int) -> Array:
    """Return sines and cosines of an index at `size / 2` frequencies, divided by sqrt(size)."""
    half = size // 2
    angle = jnp.asarray(t, jnp.float32)[..., None] * add_leading_axes(
        10_000.0 ** (-jnp.arange(half) / half), jnp.ndim(t) + 1
    )
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1) / size**0.5


@dataclass(frozen=True)
class Embedding:
    """Embedding of an index: a sinusoid and, if `learned`, an MLP of width 2 x size."""

    size: int
    activation: Activation
    learned: bool = True

    @property
    def mlp(self) -> MLP:
        return MLP((self.size,), self.size, (2 * self.size,), self.activation)

    def init(self, key: Key) -> PyTree:
        return self.mlp.init(key) if self.learned else {}

    def apply(self, params: PyTree, t: Array) -> Array:
        features = sinusoid(t, self.size)
        return self.mlp.apply(params, features) if self.learned else features


@dataclass(frozen=True)
class StateActionNet:
    """Network of observation, action and optionally an index: critic, denoiser or score."""

    spec: Spec
    outputs: int
    hidden: tuple[int, ...]
    activation: Activation
    embedding: Embedding | None = None

    @property
    def mlp(self) -> MLP:
        index = (self.embedding.size,) if self.embedding else ()
        sizes = (self.spec.obs_dim, self.spec.act_dim, *index)
        return MLP(sizes, self.outputs, self.hidden, self.activation)

    def init(self, key: Key) -> PyTree:
        body_key, embedding_key = jax.random.split(key)
        embedding = self.embedding.init(embedding_key) if self.embedding else {}
        return {"body": self.mlp.init(body_key), "embedding": embedding}

    def apply(
        self, params: PyTree, obs: Array, action: Array, index: Array | int | None = None
    ) -> Array:
        """Map (..., O), (..., A) and an index, shared or one per row, to (..., outputs)."""
        if self.embedding is None:
            return self.mlp.apply(params["body"], obs, action)
        assert index is not None
        features = self.embedding.apply(params["embedding"], jnp.asarray(index))
        return self.mlp.apply(params["body"], obs, action, features)


def smallest(values: Array) -> Array:
    """Return the minimum over the first axis, (M, ...) to (...), with a safe gradient.

    The gradient of `jnp.min` compares each value with a minimum that the compiler may have computed
    in another order. If rounding makes all of them unequal, it divides by zero.
    """
    return functools.reduce(lambda least, value: jnp.where(value < least, value, least), values)


@dataclass(frozen=True)
class Critic:
    """Ensemble of value networks with a leading axis, each initialised from its own key."""

    network: StateActionNet
    num_members: int = 2

    def init(self, key: Key) -> PyTree:
        return jax.vmap(self.network.init)(jax.random.split(key, self.num_members))

    def apply(
        self, params: PyTree, obs: Array, action: Array, level: Array | int | None = None
    ) -> Array:
        """Return values of every member, (members, ...), with a last axis of outputs if several."""
        out = jax.vmap(lambda p: self.network.apply(p, obs, action, level))(params)
        return out[..., 0] if self.network.outputs == 1 else out
