"""Rules that express JAX's primitives by the operations of exported programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from langevinrl.errors import UserError
from langevinrl.types import Array

if TYPE_CHECKING:
    from langevinrl.export.program import Builder

Params = dict[str, Any]
ELEMENTWISE = {
    "abs": "Abs", "add": "Add", "add_any": "Add", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh",
    "eq": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor", "ge": "GreaterOrEqual",
    "gt": "Greater", "le": "LessOrEqual", "log": "Log", "lt": "Less", "max": "Max", "min": "Min",
    "mul": "Mul", "neg": "Neg", "pow": "Pow", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "sub": "Sub", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
LOGICAL = {"and": "And", "not": "Not", "or": "Or", "xor": "Xor"}
REDUCTIONS = {
    "reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd",
    "reduce_sum": "ReduceSum",
}  # fmt: skip
RESHAPES = ("expand_dims", "reshape", "squeeze")
IDENTITIES = ("copy", "copy_p", "optimization_barrier", "sharding_constraint", "stop_gradient")
# Primitives that call a function, by the parameter that holds it.
CALLS = {
    "checkpoint": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "jit": "jaxpr",
    "pjit": "jaxpr", "remat2": "jaxpr",
}  # fmt: skip


def unsupported(what: str) -> UserError:
    """Return the error for something that exported programs cannot express."""
    return UserError(
        f"the policy uses JAX's {what}, which numpy and onnx files cannot hold; stablehlo can"
    )


def apply(builder: Builder, equation: Any, arguments: list[int]) -> Sequence[int]:
    """Add one equation of a traced function, and return the numbers of its results."""
    name, params = equation.primitive.name, equation.params
    values = [builder.values[i] for i in arguments]
    if name in IDENTITIES:
        return arguments
    if name in CALLS:
        return builder.inline(params[CALLS[name]], arguments)
    if name == "scan":
        return _unroll(builder, params, arguments)
    if name == "cond" and arguments[0] in builder.constants:
        return builder.inline(params["branches"][values[0]], arguments[1:])
    if name in ELEMENTWISE:
        return [builder.emit(ELEMENTWISE[name], *arguments)]
    if name in LOGICAL and values[0].dtype == np.bool_:
        return [builder.emit(LOGICAL[name], *arguments)]
    if name in REDUCTIONS:
        return [builder.emit(REDUCTIONS[name], *arguments, parameter=list(params["axes"]))]
    if name in RESHAPES:
        return [_reshape(builder, arguments[0], equation.outvars[0].aval.shape)]
    if name in RULES and (result := RULES[name](builder, params, *arguments)) is not None:
        return [result]
    if builder.constants.issuperset(arguments):  # JAX computes it now, whatever it is
        results = equation.primitive.bind(*values, **params)
        several = equation.primitive.multiple_results
        return [builder.constant(result) for result in (results if several else [results])]
    if name in FORMULAS:
        traced = jax.make_jaxpr(partial(FORMULAS[name], **params))(*values)
        return builder.inline(traced, arguments)
    raise unsupported(f"primitive {name!r}")


def _unroll(builder: Builder, params: Params, arguments: list[int]) -> list[int]:
    """Write out the steps of a scan."""
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    fixed, carry, inputs = arguments[:first], arguments[first:last], arguments[last:]
    order = -1 if params["reverse"] else 1
    outputs = []
    for step in range(params["length"])[::order]:
        rows = [builder.emit("Slice", x, parameter=[[step, step + 1, 1]]) for x in inputs]
        rows = [_reshape(builder, row, builder.values[row].shape[1:]) for row in rows]
        results = builder.inline(params["jaxpr"], [*fixed, *carry, *rows])
        carry = results[: len(carry)]
        outputs.append([_reshape(builder, x, (1, *builder.values[x].shape)) for x in results])
    columns = list(zip(*outputs[::order], strict=True))[len(carry) :]
    return [*carry, *(builder.emit("Concat", *rows, parameter=0) for rows in columns)]


def _reshape(builder: Builder, x: int, shape: Sequence[int]) -> int:
    return builder.emit("Reshape", x, parameter=list(shape))


def _divide(builder: Builder, params: Params, x: int, y: int) -> int | None:
    return builder.emit("Div", x, y) if builder.values[x].dtype.kind == "f" else None


def _select_n(builder: Builder, params: Params, which: int, *cases: int) -> int | None:
    if len(cases) != 2 or builder.values[which].dtype != np.bool_:
        return None
    return builder.emit("Where", which, cases[1], cases[0])


def _broadcast(builder: Builder, params: Params, x: int) -> int:
    sizes = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], builder.values[x].shape, strict=True):
        sizes[axis] = size
    return builder.emit("Expand", _reshape(builder, x, sizes), parameter=list(params["shape"]))


def _slice(builder: Builder, params: Params, x: int) -> int:
    starts, limits = params["start_indices"], params["limit_indices"]
    strides = params["strides"] or [1] * len(starts)
    parts = [list(part) for part in zip(starts, limits, strides, strict=True)]
    return builder.emit("Slice", x, parameter=parts)


def _gather(builder: Builder, params: Params, x: int, index: int) -> int:
    """Compute the places of the picked numbers in an array that is laid out as one row."""
    numbers, shape = params["dimension_numbers"], builder.values[x].shape
    clipped = params | {"mode": lax.GatherScatterMode.CLIP, "fill_value": None}
    origin = np.zeros_like(builder.values[index])
    places = np.asarray(lax.gather_p.bind(places_of(builder.values[x]), origin, **clipped))
    sizes = [1 if i in numbers.offset_dims else size for i, size in enumerate(places.shape)]
    before = [[0, size, 1] for size in origin.shape[:-1]]
    place = builder.constant(places)
    for column, axis in enumerate(numbers.start_index_map):
        start = builder.emit("Slice", index, parameter=[*before, [column, column + 1, 1]])
        start = builder.convert(_reshape(builder, start, sizes), np.int32)
        start = builder.emit("Max", start, builder.constant(np.int32(0)))
        last = shape[axis] - params["slice_sizes"][axis]
        start = builder.emit("Min", start, builder.constant(np.int32(last)))
        stride = builder.constant(np.int32(math.prod(shape[axis + 1 :])))
        place = builder.emit("Add", place, builder.emit("Mul", start, stride))
    return builder.emit("Gather", _reshape(builder, x, [math.prod(shape)]), place)


def _dot_general(builder: Builder, params: Params, x: int, y: int) -> int:
    """Multiply matrices (batch, rows, inner) and (batch, inner, columns)."""
    (x_inner, y_inner), (x_batch, y_batch) = params["dimension_numbers"]
    x_shape, y_shape = builder.values[x].shape, builder.values[y].shape
    x_outer = [axis for axis in range(len(x_shape)) if axis not in (*x_inner, *x_batch)]
    y_outer = [axis for axis in range(len(y_shape)) if axis not in (*y_inner, *y_batch)]
    x = builder.emit("Transpose", x, parameter=[*x_batch, *x_outer, *x_inner])
    y = builder.emit("Transpose", y, parameter=[*y_batch, *y_inner, *y_outer])
    batch, inner = [x_shape[i] for i in x_batch], math.prod(x_shape[i] for i in x_inner)
    rows, columns = [x_shape[i] for i in x_outer], [y_shape[i] for i in y_outer]
    size = [math.prod(batch)] if batch else []
    x = _reshape(builder, x, [*size, math.prod(rows), inner])
    y = _reshape(builder, y, [*size, inner, math.prod(columns)])
    return _reshape(builder, builder.emit("MatMul", x, y), [*batch, *rows, *columns])


# A rule takes the builder, the primitive's parameters and the numbers of its arguments.  It
# returns None for cases it does not cover.
RULES: dict[str, Callable[..., int | None]] = {
    "argmax": lambda b, params, x: b.emit("ArgMax", x, parameter=params["axes"][0]),
    "argmin": lambda b, params, x: b.emit("ArgMin", x, parameter=params["axes"][0]),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda b, params, *x: b.emit("Concat", *x, parameter=params["dimension"]),
    "convert_element_type": lambda b, params, x: b.convert(x, params["new_dtype"]),
    "cumsum": lambda b, params, x: (
        None if params["reverse"] else b.emit("CumSum", x, parameter=params["axis"])
    ),
    "div": _divide,
    "dot_general": _dot_general,
    "gather": _gather,
    "select_n": _select_n,
    "slice": _slice,
    "transpose": lambda b, params, x: b.emit("Transpose", x, parameter=[*params["permutation"]]),
}


def places_of(x: Any) -> Array:
    """Return the place of each number of an array in a row of all of them."""
    return jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)


def _pad(x: Array, filling: Array, padding_config: Any) -> Array:
    places = lax.pad(places_of(x), jnp.int32(x.size), padding_config)
    return jnp.concatenate([x.reshape(-1), filling.reshape(1)])[places]


def _dynamic_slice(x: Array, *starts: Array, slice_sizes: tuple[int, ...]) -> Array:
    place = places_of(x)[tuple(slice(size) for size in slice_sizes)]
    for axis, start in enumerate(starts):
        last = x.shape[axis] - slice_sizes[axis]
        place += jnp.clip(start, 0, last).astype(jnp.int32) * math.prod(x.shape[axis + 1 :])
    return x.reshape(-1)[place]


def _split(x: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    edges = pairwise(np.cumsum([0, *sizes]).tolist())
    return [lax.slice_in_dim(x, start, stop, axis=axis) for start, stop in edges]


def _integer_pow(x: Array, y: int) -> Array:
    power: Array = math.prod([x] * abs(y))  # type: ignore[assignment]  # typed for numbers
    return power if y > 0 else 1 / power


# Primitives in terms of others, as functions of their arguments and parameters.
FORMULAS: dict[str, Callable[..., Any]] = {
    "clamp": lambda low, x, high: jnp.minimum(jnp.maximum(x, low), high),
    "dynamic_slice": _dynamic_slice,
    "erfc": lambda x, **_: 1 - lax.erf(x),
    "expm1": lambda x, **_: jnp.exp(x) - 1,
    "integer_pow": _integer_pow,
    "is_finite": lambda x: jnp.abs(x) < jnp.inf,
    "log1p": lambda x, **_: jnp.log(x + 1),
    "logistic": lambda x, **_: 1 / (1 + jnp.exp(-x)),
    "ne": lambda x, y: ~(x == y),
    "pad": _pad,
    "reduce_and": lambda x, axes, **_: x.astype(jnp.int32).min(axes) > 0,
    "reduce_or": lambda x, axes, **_: x.astype(jnp.int32).max(axes) > 0,
    "rev": lambda x, dimensions: x.reshape(-1)[lax.rev(places_of(x), dimensions)],
    "rsqrt": lambda x, **_: 1 / jnp.sqrt(x),
    "split": _split,
    "square": lambda x: x * x,
    "stack": lambda *x, axis: jnp.concatenate([jnp.expand_dims(y, axis) for y in x], axis),
    "tile": lambda x, reps: x.reshape(-1)[jnp.tile(places_of(x), reps)],
}
