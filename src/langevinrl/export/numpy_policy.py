"""Run an exported policy with NumPy alone: NumpyPolicy("policy.npz", seed=0)(obs)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

FORMAT = "langevinrl policy 2"
MAX_NUMBERS = 2**28  # in memory at once: 1 GB of float32
DTYPES = {"float32": np.float32, "int32": np.int32, "bool": np.bool_}
DISTRIBUTIONS = ("normal", "uniform")  # of noise: standard normal, or uniform on [-1, 1]


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function by formula 7.1.26 of Abramowitz and Stegun, to 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    tail = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    tail = t * (0.254829592 + t * (-0.284496736 + t * tail)) * np.exp(-np.square(x))
    return np.sign(x) * (1.0 - tail)


# Operations have the names and meaning of ONNX operators.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "Add": np.add, "And": np.logical_and, "Ceil": np.ceil, "Cos": np.cos,
    "Cosh": np.cosh, "Div": np.divide, "Equal": np.equal, "Erf": erf, "Exp": np.exp,
    "Floor": np.floor, "Greater": np.greater, "GreaterOrEqual": np.greater_equal,
    "Less": np.less, "LessOrEqual": np.less_equal, "Log": np.log, "Max": np.maximum,
    "Min": np.minimum, "Mul": np.multiply, "Neg": np.negative, "Not": np.logical_not,
    "Or": np.logical_or, "Pow": np.power, "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Sqrt": np.sqrt, "Sub": np.subtract, "Tan": np.tan, "Tanh": np.tanh,
    "Where": lambda condition, x, y: np.where(condition, x, y), "Xor": np.logical_xor,
}  # fmt: skip
# Those with a parameter take it first.
OPERATIONS: dict[str, Callable[..., Any]] = {
    **ELEMENTWISE,
    "ArgMax": lambda axis, x: x.argmax(axis=axis),
    "ArgMin": lambda axis, x: x.argmin(axis=axis),
    "Cast": lambda dtype, x: x.astype(DTYPES[dtype]),
    "Concat": lambda axis, *arrays: np.concatenate(arrays, axis=axis),
    "CumSum": lambda axis, x: x.cumsum(axis=axis),
    "Expand": lambda shape, x: np.broadcast_to(x, shape),
    "Gather": lambda x, index: np.take(x, index, axis=0, mode="clip"),
    "MatMul": np.matmul,
    "ReduceMax": lambda axes, x: x.max(axis=tuple(axes)),
    "ReduceMin": lambda axes, x: x.min(axis=tuple(axes)),
    "ReduceProd": lambda axes, x: x.prod(axis=tuple(axes)),
    "ReduceSum": lambda axes, x: x.sum(axis=tuple(axes)),
    "Reshape": lambda shape, x: x.reshape(shape),
    "Slice": lambda parts, x: x[tuple(slice(*part) for part in parts)],
    "Transpose": lambda axes, x: x.transpose(axes),
}


def draw_noise(
    shapes: Mapping[str, Sequence[int]], rng: np.random.Generator, rows: int = 1
) -> dict[str, np.ndarray]:
    """Draw the noise of `rows` actions; `shapes` has the shape for one action by name.

    A name begins with the distribution: "normal.steps", "uniform.start".
    """
    noise = {}
    for name, shape in shapes.items():
        size = (rows, *shape)
        normal = name.startswith("normal")
        drawn = rng.standard_normal(size) if normal else rng.uniform(-1.0, 1.0, size)
        noise[name] = drawn.astype(np.float32)
    return noise


class NumpyPolicy:
    """A policy read from the file that `langevinrl export --format numpy` writes.

    The whole file is checked when it is loaded, and no text in it is run as code.  A file that
    cannot be used raises ValueError.
    """

    metadata: dict[str, Any]  # agent, obs_dim, action_shape, action_dtype, noise: shapes by name

    def __init__(self, path: Any, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        try:
            with np.load(path, allow_pickle=False) as file:
                _require_small(sum(info.file_size for info in file.zip.infolist()) // 4)
                arrays = {name: file[name] for name in file.files}
            self._build(json.loads(arrays.pop("program").tobytes()), arrays)
        except FileNotFoundError:
            raise
        except Exception as error:  # a damaged file can fail anywhere
            reason = str(error) if isinstance(error, ValueError) else repr(error)
            raise ValueError(f"cannot read a policy from {path}: {reason}") from error

    def draw_noise(self, rows: int = 1) -> dict[str, np.ndarray]:
        """Draw the noise of that many actions, by name, each (rows, ...)."""
        return draw_noise(self.metadata["noise"], self.rng, rows)

    def __call__(self, obs: Any, noise: dict[str, np.ndarray] | None = None) -> np.ndarray:
        """Return the action for one observation (O,) or several (B, O).

        `noise` is as `draw_noise` returns it, which is called unless it is given.
        """
        given = np.asarray(obs, np.float32)
        rows = np.atleast_2d(given)
        size = self.metadata["obs_dim"]
        if given.ndim not in (1, 2) or rows.shape[1] != size:
            raise ValueError(f"obs has shape {given.shape}; expected ({size},) or (B, {size})")
        noise = self.draw_noise(len(rows)) if noise is None else noise
        shapes = self.metadata["noise"]
        if set(noise) != set(shapes):
            raise ValueError(f"noise has the parts {sorted(noise)}; expected {sorted(shapes)}")
        inputs = [rows]
        for name, shape in shapes.items():
            inputs.append(np.asarray(noise[name], np.float32).reshape(len(rows), *shape))
        with np.errstate(all="ignore"):
            actions = [self._act(row) for row in zip(*inputs, strict=True)]
        action = np.array(actions, self.metadata["action_dtype"])
        return action[0] if given.ndim == 1 else action

    def _act(self, inputs: tuple[np.ndarray, ...]) -> np.ndarray:
        """Run the program for one observation."""
        values: list[Any] = [*inputs, *self._values]
        for result, call, arguments, done in self._calls:
            values[result] = call(*[values[i] for i in arguments])
            for i in done:
                values[i] = None
        return np.asarray(values[self._output])

    def _build(self, program: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        _require(program["format"] == FORMAT, f"its format is not {FORMAT!r}")
        self.metadata = program["metadata"]
        inputs = []
        for name, shape in {"obs": [self.metadata["obs_dim"]], **self.metadata["noise"]}.items():
            known = name == "obs" or name.split(".")[0] in DISTRIBUTIONS
            _require(known, f"its noise {name!r} has an unknown distribution")
            _require_small(math.prod(shape))
            inputs.append(np.zeros(shape, np.float32))
        values = [*inputs, *_constants(program["constants"], arrays)]
        self._calls = _compile(program["instructions"], values, len(inputs), program["output"])
        self._output = program["output"]
        shape, expected = values[self._output].shape, tuple(self.metadata["action_shape"])
        _require(shape == expected, f"its actions have shape {shape}, not {expected}")
        _require(bool(np.isfinite(values[self._output]).all()), "its actions are not finite")
        kind = np.dtype(self.metadata["action_dtype"]).kind
        _require(kind == "f", "its actions are not floating-point numbers")
        self._values = values[len(inputs) :]


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _require_small(size: int) -> None:
    _require(size <= MAX_NUMBERS, f"{size} numbers are too many")


def _constants(table: list[Any], arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Cut the arrays, one row of numbers for each dtype, into constants of given shapes."""
    constants: list[np.ndarray] = []
    begin = dict.fromkeys(arrays, 0)
    for dtype, shape in table:
        _require(arrays[dtype].dtype == DTYPES[dtype], f"its {dtype} numbers have another dtype")
        end = begin[dtype] + math.prod(shape)
        _require(min(shape, default=0) >= 0, f"constant {len(constants)} has a negative size")
        part = arrays[dtype][begin[dtype] : end].reshape(shape)
        # Scalars may be limits of the program, such as the start of a maximum.
        finite = part.ndim == 0 or bool(np.isfinite(part).all())
        _require(finite, f"constant {len(constants)} has NaN or infinite numbers")
        begin[dtype] = end
        constants.append(part)
    sizes = {dtype: len(array) for dtype, array in arrays.items()}
    _require(begin == sizes, "the sizes of its constants do not add up")
    return constants


def _result_size(name: str, shapes: list[tuple[int, ...]], parameter: list[Any]) -> int:
    """Return how many numbers an operation makes, or a bound on it."""
    if name == "Expand":
        return math.prod(parameter[0])
    if name == "Concat":
        return sum(map(math.prod, shapes))
    if name == "Gather":
        return math.prod(shapes[0][1:]) * math.prod(shapes[1])
    if name == "MatMul":
        (*left, rows, _), (*right, _, columns) = shapes
        return math.prod(np.broadcast_shapes(tuple(left), tuple(right))) * rows * columns
    return math.prod(np.broadcast_shapes(*shapes))


def _compile(
    instructions: list[Any], values: list[Any], num_inputs: int, output: int
) -> list[tuple[int, Callable[..., Any], list[int], list[int]]]:
    """Check and run instructions, adding their results to `values`, and return them as calls.

    Results of constants alone are kept; the others are run again for every action.
    """
    last_use = {i: n for n, (_, arguments, *_) in enumerate(instructions) for i in arguments}
    last_use[output] = len(instructions)
    known, calls = set(range(num_inputs, len(values))), []
    in_memory = sum(value.size for value in values)
    for number, (name, arguments, *parameter) in enumerate(instructions):
        result = len(values)
        try:
            _require(all(0 <= i < result for i in arguments), "it uses an undefined value")
            operation = OPERATIONS[name]
            arity = getattr(operation, "nin", None)  # another argument would be written to
            given = len(arguments) + len(parameter)
            _require(arity in (None, given), "wrong number of arguments")
            call = partial(operation, *parameter) if parameter else operation
            taken = [values[i] for i in arguments]
            _require_small(in_memory + _result_size(name, [x.shape for x in taken], parameter))
            with np.errstate(all="ignore"):
                values.append(call(*taken))
            in_memory += values[-1].size
        except Exception as error:
            where = f"instruction {number} ({str(name)[:40]!r})"
            raise ValueError(f"{where} fails: {error!r}") from error
        done = [i for i in {result, *arguments} if last_use.get(i, number) == number]
        if known.issuperset(arguments):
            known.add(result)
        else:
            done = [i for i in done if i not in known]
            calls.append((result, call, arguments, done))
        for i in done:
            in_memory -= values[i].size
            values[i] = None
    return calls
