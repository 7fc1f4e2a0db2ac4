"""A trained policy as tables: what every exported form holds, and what `chain.act` runs.

All ten methods act by one rule.  From a start x, step k asks its field f (the critics' gradient in
the action, or a network) and moves to

    guess = a x + b f(x),  clipped to the box if `clip_guess`
    x     = c guess + d x + e noise,  clipped to the box if `clip_step`

and the row (a, b, c, d, e) of `steps` says how far.  What a step or level index adds to the first
layer is computed beforehand, one row per step, so that no embedding is left in the chain.  So is
what a policy does to its observations first, and the centring of a layer norm.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.networks import Embedding
from langevinrl.types import Array, PyTree, Spec

Arrays: TypeAlias = dict[str, np.ndarray]
KeyUse: TypeAlias = Literal["whole", "first_half", "fixed"]


@dataclass(frozen=True)
class Facts:
    """What is not an array; as JSON in every exported file."""

    agent: str  # the method's class
    obs_dim: int
    act_dim: int
    bound: float  # half-width of the box the chain walks in
    best_of: int  # N: candidates, of which the lesser critic chooses
    activation: str
    drift: Literal["gradient", "network"]  # what the field is
    normalise: bool  # follow the gradient's direction only
    start: Literal["uniform", "normal", "zero"]
    start_scale: float  # factor on the first draw
    num_draws: int  # noise per candidate: the start's and one a step, the start's only, or none
    clip_guess: bool
    clip_step: bool
    squash: bool = False  # tanh at the end (SAC)
    # of hidden layers, over the root mean square; a layer norm is that with centred tables
    norm: Literal["none", "rms"] = "none"

    @property
    def noise_shape(self) -> tuple[int, int, int]:
        """Of one decision: (draws, N, A)."""
        return self.num_draws, self.best_of, self.act_dim


class Policy(NamedTuple):
    """Tables of one trained seed.

    arrays: steps (K, 5); limits (K,), how far b f(x) may move x, if there is a limit; centre and
    stretch (A,), from the chain's box to the task's; of the field obs (M, O, H), action (M, A, H),
    rows (K, M, H), weight.i (M, H, H') and bias.i (M, H'); the
    same of the judge if N > 1, of which only rows is there if it is the field's critics.
    """

    facts: Facts
    arrays: Arrays
    key_use: KeyUse = "whole"  # which key the agent draws a chain's noise from
    backwards: bool = False  # the agent spends its keys from the last to the first


class Box(NamedTuple):
    """The task's action box: centre + stretch x action of the agent's own box; (A,) each."""

    centre: np.ndarray
    stretch: np.ndarray

    @classmethod
    def own(cls, spec: Spec) -> Box:
        """The agent's own box, left as it is."""
        return cls(np.zeros(spec.act_dim, np.float32), np.ones(spec.act_dim, np.float32))


def build(facts: Facts, steps: Any, field: Arrays, judge: Arrays, box: Box, **key: Any) -> Policy:
    """The tables with their names, in float32; the judge is left out where none is needed."""
    arrays: Arrays = {"steps": np.stack([np.asarray(column) for column in steps], axis=1)}
    arrays |= {"centre": np.asarray(box.centre), "stretch": np.asarray(box.stretch)}
    arrays |= {f"field.{name}": array for name, array in field.items()}
    if facts.best_of > 1:
        arrays |= {f"judge.{name}": array for name, array in judge.items()}
    return Policy(facts, {k: np.ascontiguousarray(a, np.float32) for k, a in arrays.items()}, **key)


def network_tables(body: PyTree, rows: Array, outputs: slice = slice(None)) -> Arrays:
    """Tables of perceptrons (M, ...) on (obs, action, ...), given each step's row (K, M, H)."""
    named: dict[str, Any] = {"obs": body["inputs"][0], "action": body["inputs"][1], "rows": rows}
    layers = body["layers"][1:]
    for i, layer in enumerate(layers):
        kept = outputs if i == len(layers) - 1 else slice(None)
        named[f"weight.{i}"] = np.asarray(layer["weight"])[..., kept]
        named[f"bias.{i}"] = np.asarray(layer["bias"])[..., kept]
    return {name: np.asarray(array) for name, array in named.items()}


def bias_rows(body: PyTree, num_steps: int) -> Array:
    """The first layer's bias for every step, where no index is told: (K, M, H)."""
    bias = jnp.asarray(body["layers"][0]["bias"])
    return jnp.broadcast_to(bias[None], (num_steps, *bias.shape))


def index_rows(network: PyTree, embedding: Embedding, index: Array) -> Array:
    """What indices (K,) add to the first layer of networks (M, ...), bias included: (K, M, H)."""

    def member(params: PyTree) -> Array:
        body = params["body"]
        features = embedding.apply(params["embedding"], index)
        return features @ body["inputs"][2] + body["layers"][0]["bias"][None]

    return jax.vmap(member, out_axes=1)(network)


def fold_scaling(body: PyTree, mean: Array, deviation: Array) -> PyTree:
    """Perceptrons (M, ...) on raw observations that do what these do on scaled ones.

    (o - mean) / deviation @ W is o @ (W / deviation) less a bias; in float64, as both may be large.
    """
    first, *others = body["inputs"]
    weight = np.asarray(first, np.float64) / np.asarray(deviation, np.float64)[:, None]
    bias = np.asarray(body["layers"][0]["bias"]) - np.asarray(mean, np.float64) @ weight
    layers = [{**body["layers"][0], "bias": _single(bias)}, *body["layers"][1:]]
    return {"inputs": [_single(weight), *others], "layers": layers}


def centre_features(body: PyTree) -> PyTree:
    """Perceptrons (M, ...) whose hidden features have a mean of zero, else these.

    A layer norm takes the mean away from each row, and that can be done to what makes the row.
    """

    def centre(leaf: Array) -> Array:
        wide = np.asarray(leaf, np.float64)
        return _single(wide - wide.mean(axis=-1, keepdims=True))

    *hidden, last = body["layers"]
    layers = [{name: centre(leaf) for name, leaf in layer.items()} for layer in hidden]
    return {"inputs": [centre(weight) for weight in body["inputs"]], "layers": [*layers, last]}


def _single(wide: np.ndarray) -> Array:
    return jnp.asarray(wide, jnp.float32)


def alone(params: PyTree) -> PyTree:
    """One network as an ensemble of one."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)


def facts_of(agent: Any, best_of: int, **rest: Any) -> Facts:
    """Facts with the fields every agent has filled in."""
    spec: Spec = agent.spec
    sizes = (spec.obs_dim, spec.act_dim, float(spec.act_bound))
    return Facts(type(agent).__name__, *sizes, best_of, agent.activation, **rest)


def to_json(facts: Facts) -> dict[str, Any]:
    """The facts as a table of plain values."""
    return dataclasses.asdict(facts)
