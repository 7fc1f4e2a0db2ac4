"""Programs: lists of array operations that NumPy and ONNX can run, made from JAX functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from langevinrl.export.numpy_policy import DTYPES, OPERATIONS
from langevinrl.export.primitives import apply, unsupported

Instruction = tuple[Any, ...]  # operation, numbers of its arguments, and its parameter if any
SMALL = 1024  # numbers: larger views of constants are made by the program, not stored with it


class Program(NamedTuple):
    """A function as instructions; its values are numbered: inputs, constants, then results."""

    constants: list[np.ndarray]
    instructions: list[Instruction]
    output: int  # number of the value that is returned


def translate(function: Callable[..., Any], examples: Sequence[np.ndarray]) -> Program:
    """Trace a function of arrays that returns one array.

    Loops are unrolled and calls inlined.  What depends on constants alone is computed here.
    """
    traced = jax.make_jaxpr(function)(*examples)
    builder = Builder()
    inputs = [builder.add(example) for example in examples]
    (output,) = builder.inline(traced, inputs)
    return builder.finish(len(inputs), output)


class Builder:
    """A program under construction.

    Each value is computed for the example inputs when it is added.  So its shape and dtype are
    known, and so are constants.
    """

    def __init__(self) -> None:
        self.values: list[np.ndarray] = []
        self.constants: set[int] = set()
        self._made: dict[int, Instruction] = {}  # by the number of its result
        self._numbers: dict[Any, int] = {}  # of constants and instructions, to make none twice

    def add(self, value: np.ndarray) -> int:
        """Number a value."""
        self.values.append(value)
        return len(self.values) - 1

    def constant(self, value: Any) -> int:
        """Return the number of a constant."""
        array = np.asarray(value)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._numbers:
            self._numbers[key] = self.add(array)
            self.constants.add(self._numbers[key])
        return self._numbers[key]

    def emit(self, name: str, *arguments: int, parameter: Any = None) -> int:
        """Return the number of an operation's result, adding an instruction if it needs one."""
        instruction = (name, arguments, *([] if parameter is None else [parameter]))
        key = repr(instruction)
        if key in self._numbers:
            return self._numbers[key]
        taken = [self.values[i] for i in arguments]
        with np.errstate(all="ignore"):
            result = np.asarray(OPERATIONS[name](*instruction[2:], *taken))
        if name in ("Reshape", "Expand") and result.shape == taken[0].shape:
            return arguments[0]
        if name == "Transpose" and parameter == sorted(parameter):
            return arguments[0]
        stored = name not in ("Transpose", "Expand") or result.size <= SMALL
        if stored and self.constants.issuperset(arguments):
            return self.constant(result)
        self._numbers[key] = self.add(result)
        self._made[self._numbers[key]] = instruction
        return self._numbers[key]

    def convert(self, number: int, dtype: Any) -> int:
        """Return the number of a value in another dtype."""
        dtype = np.dtype(dtype)
        if self.values[number].dtype == dtype:
            return number
        if number in self.constants:
            return self.constant(self.values[number].astype(dtype))
        if str(dtype) not in DTYPES:
            raise unsupported(f"dtype {dtype}")
        return self.emit("Cast", number, parameter=str(dtype))

    def inline(self, traced: Any, arguments: Sequence[int]) -> list[int]:
        """Add a traced function's equations, and return the numbers of its results."""
        closed = isinstance(traced, ClosedJaxpr)
        inner: Any = traced.jaxpr if closed else traced
        consts = traced.consts if closed else ()
        numbers = dict(zip(inner.constvars, map(self.constant, consts), strict=True))
        numbers |= dict(zip(inner.invars, arguments, strict=True))

        def read(variable: Any) -> int:
            if isinstance(variable, Literal):
                aval: Any = variable.aval
                return self.constant(np.asarray(variable.val, aval.dtype))
            return numbers[variable]

        for equation in inner.eqns:
            results = apply(self, equation, [read(variable) for variable in equation.invars])
            for variable, number in zip(equation.outvars, results, strict=True):
                numbers[variable] = self.convert(number, variable.aval.dtype)
        return [read(variable) for variable in inner.outvars]

    def finish(self, num_inputs: int, output: int) -> Program:
        """Drop what the output does not need, and number the rest in order."""
        needed = {output}
        for number in sorted(self._made, reverse=True):
            if number in needed:
                needed.update(self._made[number][1])
        constants = sorted(needed & self.constants)
        made = sorted(needed & self._made.keys())
        order = {old: new for new, old in enumerate([*range(num_inputs), *constants, *made])}
        instructions = []
        for name, arguments, *parameter in (self._made[number] for number in made):
            instructions.append((name, [order[i] for i in arguments], *parameter))
        arrays = [self.values[number] for number in constants]
        for array in arrays:
            if str(array.dtype) not in DTYPES:
                raise unsupported(f"dtype {array.dtype}")
        return Program(arrays, instructions, order[output])
