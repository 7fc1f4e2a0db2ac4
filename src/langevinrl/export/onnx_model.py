"""ONNX models of exported programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from langevinrl.export.program import Instruction, Program

OPSET, IR_VERSION = 18, 8  # versions of 2022, which older runtimes read too


def make_model(
    program: Program, shapes: dict[str, tuple[int, ...]], action_shape: tuple[int, ...]
) -> onnx.ModelProto:
    """Return a model that runs a program for every row of its inputs."""
    constants = {f"constant_{i}": array for i, array in enumerate(program.constants)}
    names = [*(f"{name}_row" for name in shapes), *constants]
    nodes: list[Any] = []
    for instruction in program.instructions:
        inputs, lists, attributes = _arguments(instruction, names)
        constants |= lists
        names.append(f"value_{len(nodes)}")
        nodes.append(helper.make_node(instruction[0], inputs, names[-1:], **attributes))
    nodes.append(helper.make_node("Identity", [names[program.output]], ["action_row"]))
    tensors = [numpy_helper.from_array(array.copy(), name) for name, array in constants.items()]
    row_inputs = [_describe(f"{name}_row", shape) for name, shape in shapes.items()]
    row_outputs = [_describe("action_row", action_shape)]
    row = helper.make_graph(nodes, "row", row_inputs, row_outputs, initializer=tensors)
    scan = helper.make_node("Scan", [*shapes], ["action"], body=row, num_scan_inputs=len(shapes))
    all_inputs = [_describe(name, ("rows", *shape)) for name, shape in shapes.items()]
    all_outputs = [_describe("action", ("rows", *action_shape))]
    graph = helper.make_graph([scan], "policy", all_inputs, all_outputs)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _describe(name: str, shape: Sequence[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape))


def _arguments(
    instruction: Instruction, names: list[str]
) -> tuple[list[str], dict[str, np.ndarray], dict[str, Any]]:
    """Return a node's inputs, those among them that are new constants, and its attributes."""
    kind, arguments, *parameter = instruction
    lists: list[Sequence[int]] = []
    attributes: dict[str, Any] = {}
    if kind in ("ArgMax", "ArgMin"):
        attributes = {"axis": parameter[0], "keepdims": 0}
    elif kind == "Concat":
        attributes = {"axis": parameter[0]}
    elif kind == "Transpose":
        attributes = {"perm": parameter[0]}
    elif kind == "Cast":
        attributes = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(parameter[0]))}
    elif kind.startswith("Reduce"):
        attributes, lists = {"keepdims": 0}, [parameter[0]]
    elif kind == "Slice":
        starts, stops, steps = zip(*parameter[0], strict=True)
        lists = [starts, stops, range(len(steps)), steps]
    else:
        lists = parameter  # Reshape, Expand, CumSum
    constants = {
        f"list_{list(np.ravel(numbers))}": np.array(numbers, np.int64) for numbers in lists
    }
    return [*(names[i] for i in arguments), *constants], constants, attributes
