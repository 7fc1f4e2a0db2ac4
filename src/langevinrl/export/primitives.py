"""Rules that express JAX's primitives by the operations of exported programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from langevinrl.errors import UserError

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
    "reduce_and": "ReduceMin", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_or": "ReduceMax", "reduce_prod": "ReduceProd", "reduce_sum": "ReduceSum",
}  # fmt: skip
PICKS = ("rev", "tile")
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
    if name in IDENTITIES:
        return arguments
    if name in CALLS:
        return builder.inline(params[CALLS[name]], arguments)
    if name == "scan":
        return _unroll(builder, params, arguments)
    if name == "cond" and arguments[0] in builder.constants:
        return builder.inline(params["branches"][builder.values[arguments[0]]], arguments[1:])
    if name == "split":
        return _split(builder, params, *arguments)
    if name in ELEMENTWISE:
        return [builder.emit(ELEMENTWISE[name], *arguments)]
    if name in LOGICAL and builder.values[arguments[0]].dtype == np.bool_:
        return [builder.emit(LOGICAL[name], *arguments)]
    if name in REDUCTIONS:
        return [_reduce(builder, REDUCTIONS[name], list(params["axes"]), *arguments)]
    if name in RESHAPES:
        return [builder.emit("Reshape", arguments[0], parameter=[*equation.outvars[0].aval.shape])]
    if name in PICKS:
        return [_pick(builder, equation, *arguments)]
    if name in RULES and (result := RULES[name](builder, params, *arguments)) is not None:
        return [result]
    if builder.constants.issuperset(arguments):  # JAX computes it now, whatever it is
        results = equation.primitive.bind(*[builder.values[i] for i in arguments], **params)
        several = equation.primitive.multiple_results
        return [builder.constant(result) for result in (results if several else [results])]
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


def _split(builder: Builder, params: Params, x: int) -> list[int]:
    before = [[0, size, 1] for size in builder.values[x].shape[: params["axis"]]]
    parts = [[*pair, 1] for pair in pairwise(np.cumsum([0, *params["sizes"]]).tolist())]
    return [builder.emit("Slice", x, parameter=[*before, part]) for part in parts]


def _reduce(builder: Builder, kind: str, axes: list[int], x: int) -> int:
    number = builder.convert(x, np.int32) if builder.values[x].dtype == np.bool_ else x
    return builder.emit(kind, number, parameter=axes)


def _constant_like(builder: Builder, x: int, value: float) -> int:
    return builder.constant(np.asarray(value, builder.values[x].dtype))


def _divide(builder: Builder, params: Params, x: int, y: int) -> int | None:
    return builder.emit("Div", x, y) if builder.values[x].dtype.kind == "f" else None


def _reciprocal(builder: Builder, x: int) -> int:
    return builder.emit("Div", _constant_like(builder, x, 1.0), x)


def _add_one(builder: Builder, x: int) -> int:
    return builder.emit("Add", x, _constant_like(builder, x, 1.0))


def _logistic(builder: Builder, params: Params, x: int) -> int:
    return _reciprocal(builder, _add_one(builder, builder.emit("Exp", builder.emit("Neg", x))))


def _integer_pow(builder: Builder, params: Params, x: int) -> int:
    power = x
    for bit in f"{abs(params['y']):b}"[1:]:
        power = builder.emit("Mul", power, power)
        power = builder.emit("Mul", power, x) if bit == "1" else power
    return power if params["y"] > 0 else _reciprocal(builder, power)


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


def _places(builder: Builder, x: int) -> Any:
    shape = builder.values[x].shape
    return jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)


def _pick(builder: Builder, equation: Any, x: int) -> int:
    """Find the numbers that an operation picks by applying it to an array of places."""
    index = equation.primitive.bind(_places(builder, x), **equation.params)
    return _take(builder, x, np.asarray(index), {})


def _take(builder: Builder, x: int, places: Any, starts: dict[int, int]) -> int:
    """Take numbers from places of x, moved by a start along some axes."""
    shape = builder.values[x].shape
    index = builder.constant(np.asarray(places))
    for axis, start in starts.items():
        stride = builder.constant(np.int32(math.prod(shape[axis + 1 :])))
        index = builder.emit("Add", index, builder.emit("Mul", start, stride))
    return builder.emit("Gather", _reshape(builder, x, [math.prod(shape)]), index)


def _start(builder: Builder, start: int, last: int) -> int:
    """Keep the start of a slice in its array."""
    start = builder.convert(start, np.int32)
    start = builder.emit("Max", start, builder.constant(np.int32(0)))
    return builder.emit("Min", start, builder.constant(np.int32(last)))


def _dynamic_slice(builder: Builder, params: Params, x: int, *starts: int) -> int:
    shape, sizes = builder.values[x].shape, params["slice_sizes"]
    places = _places(builder, x)[tuple(slice(size) for size in sizes)]
    lasts = [end - size for end, size in zip(shape, sizes, strict=True)]
    pairs = enumerate(zip(starts, lasts, strict=True))
    return _take(builder, x, places, {i: _start(builder, *pair) for i, pair in pairs})


def _gather(builder: Builder, params: Params, x: int, index: int) -> int:
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    shape, indices = builder.values[x].shape, builder.values[index]
    clipped = params | {"mode": lax.GatherScatterMode.CLIP, "fill_value": None}
    places = lax.gather_p.bind(_places(builder, x), np.zeros_like(indices), **clipped)
    rows = [1 if i in numbers.offset_dims else size for i, size in enumerate(places.shape)]
    before = [[0, size, 1] for size in indices.shape[:-1]]
    starts = {}
    for column, axis in enumerate(numbers.start_index_map):
        start = builder.emit("Slice", index, parameter=[*before, [column, column + 1, 1]])
        start = _start(builder, start, shape[axis] - sizes[axis])
        starts[axis] = _reshape(builder, start, rows)
    return _take(builder, x, places, starts)


def _pad(builder: Builder, params: Params, x: int, filling: int) -> int:
    places = _places(builder, x)
    index = lax.pad(places, jnp.int32(places.size), params["padding_config"])
    row = [_reshape(builder, x, [places.size]), _reshape(builder, filling, [1])]
    return builder.emit(
        "Gather", builder.emit("Concat", *row, parameter=0), builder.constant(index)
    )


def _stack(builder: Builder, params: Params, *arrays: int) -> int:
    shape = list(builder.values[arrays[0]].shape)
    shape.insert(params["axis"], 1)
    rows = [_reshape(builder, x, shape) for x in arrays]
    return builder.emit("Concat", *rows, parameter=params["axis"])


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
    "clamp": lambda b, params, low, x, high: b.emit("Min", b.emit("Max", x, low), high),
    "concatenate": lambda b, params, *x: b.emit("Concat", *x, parameter=params["dimension"]),
    "convert_element_type": lambda b, params, x: b.convert(x, params["new_dtype"]),
    "cumsum": lambda b, params, x: (
        None if params["reverse"] else b.emit("CumSum", x, parameter=params["axis"])
    ),
    "div": _divide,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "erfc": lambda b, params, x: b.emit("Sub", _constant_like(b, x, 1.0), b.emit("Erf", x)),
    "expm1": lambda b, params, x: b.emit("Sub", b.emit("Exp", x), _constant_like(b, x, 1.0)),
    "gather": _gather,
    "integer_pow": _integer_pow,
    "is_finite": lambda b, params, x: b.emit(
        "Less", b.emit("Abs", x), _constant_like(b, x, np.inf)
    ),
    "log1p": lambda b, params, x: b.emit("Log", _add_one(b, x)),
    "logistic": _logistic,
    "ne": lambda b, params, x, y: b.emit("Not", b.emit("Equal", x, y)),
    "pad": _pad,
    "rsqrt": lambda b, params, x: _reciprocal(b, b.emit("Sqrt", x)),
    "select_n": _select_n,
    "slice": _slice,
    "square": lambda b, params, x: b.emit("Mul", x, x),
    "stack": _stack,
    "transpose": lambda b, params, x: b.emit("Transpose", x, parameter=[*params["permutation"]]),
}
