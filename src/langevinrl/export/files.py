"""Policies of run folders as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from langevinrl.envs.factory import EnvLike, as_factory, identify
from langevinrl.errors import UserError, unknown
from langevinrl.export.numpy_policy import FORMAT, NumpyPolicy
from langevinrl.export.program import Program, translate
from langevinrl.export.trace import TracedPolicy, change_fields, trace_policy
from langevinrl.runs.saved import read_model
from langevinrl.storage.files import require_no_link

PLATFORMS = ("cpu", "cuda", "tpu")  # that a StableHLO file can be run on
TOLERANCE = 1e-4  # of the difference between a file's actions and the agent's, in the agent's box


def export(
    folder: str | Path,
    format: str = "numpy",
    out: str | Path | None = None,
    *,
    seed_index: int = 0,
    env: EnvLike | None = None,
    trust: bool = False,
    **changes: int,
) -> Path:
    """Write the evaluation policy of a run or saved model as one file, and return its path.

    `format` is numpy (.npz), stablehlo or onnx.  `out` defaults to policy.npz and so on in the
    folder.  `seed_index` selects one of the seeds trained together.  `env` is the task, for folders
    without a record of its spaces.  `trust` allows an agent from outside the package.

    `changes` are fields that need no new training:
    best_of, steps_per_level (NC-LQL), num_steps (LQL, QSM), flow_steps (MFP).

    export("runs/cheetah", "onnx", best_of=8)
    """
    if format not in WRITERS:
        raise UserError(unknown("format", format, WRITERS))
    ending, write = WRITERS[format]
    path = Path(out) if out is not None else require_no_link(Path(folder) / f"policy{ending}")
    content = write(read_policy(folder, seed_index, env, changes, trust))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def read_policy(
    folder: str | Path,
    seed_index: int = 0,
    env: EnvLike | None = None,
    changes: dict[str, int] | None = None,
    trust: bool = False,
) -> TracedPolicy:
    """Read one trained seed's policy from a run or a saved model."""
    source = None if env is None else identify(env)._replace(factory=as_factory(env))
    saved = read_model(folder, source, trust)
    if not 0 <= seed_index < saved.config.seeds:
        raise UserError(f"seed_index is {seed_index}; trained seeds: {saved.config.seeds}")
    state = jax.tree.map(lambda leaf: leaf[seed_index], saved.state)
    agent = change_fields(saved.agent, state, changes or {})
    return trace_policy(agent, state, saved.spaces)


def to_numpy(policy: TracedPolicy) -> bytes:
    """Write an .npz without pickle: the program as JSON, and its constants by dtype."""
    program = _translate(policy)
    constants = program.constants
    header = {
        "format": FORMAT,
        "metadata": policy.metadata,
        "constants": [[str(array.dtype), array.shape] for array in constants],
        "instructions": program.instructions,
        "output": program.output,
    }
    arrays = {"program": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    for dtype in sorted({str(array.dtype) for array in constants}):
        parts = [array.reshape(-1) for array in constants if str(array.dtype) == dtype]
        arrays[dtype] = np.concatenate(parts)
    file = BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # no name of ours is an option
    file.seek(0)
    loaded = NumpyPolicy(file)
    _check(policy, lambda inputs: loaded(inputs.pop("obs"), inputs))
    return file.getvalue()


def to_stablehlo(policy: TracedPolicy) -> bytes:
    """Serialise a function of obs (B, O) and the noise by name, for any number of rows."""

    def act(obs: Any, noise: dict[str, Any]) -> Any:
        return jax.vmap(policy.act)(obs, *(noise[name] for name in policy.noise))

    (rows,) = jax.export.symbolic_shape("rows")
    inputs: dict[str, Any] = {}
    for name, shape in policy.shapes.items():
        inputs[name] = jax.ShapeDtypeStruct((rows, *shape), jnp.float32)  # type: ignore[no-untyped-call]
    exported = jax.export.export(jax.jit(act), platforms=PLATFORMS)(inputs.pop("obs"), inputs)
    try:
        return bytes(exported.serialize())
    except ImportError as error:
        raise UserError(
            "StableHLO needs flatbuffers, which is not installed: "
            "pip install 'langevinrl[stablehlo]'"
        ) from error


def to_onnx(policy: TracedPolicy) -> bytes:
    """Serialise a model with the input obs and one for each array of noise."""
    try:
        import onnxruntime

        from langevinrl.export.onnx_model import make_model
    except ImportError as error:
        raise UserError(
            f"ONNX needs {error.name}, which is not installed: pip install 'langevinrl[onnx]'"
        ) from error
    shape = policy.spaces.action_space.shape
    model = make_model(_translate(policy), policy.shapes, shape)
    entry = model.metadata_props.add()
    entry.key, entry.value = "policy", json.dumps(policy.metadata)
    content = bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _check(policy, lambda inputs: session.run(None, inputs)[0])
    return content


def _translate(policy: TracedPolicy) -> Program:
    program = translate(policy.act, [array[0] for array in policy.examples(1).values()])
    if not all(array.ndim == 0 or np.isfinite(array).all() for array in program.constants):
        raise UserError(f"the weights of {policy.agent} have NaN or infinite numbers")
    return program


def _check(policy: TracedPolicy, act: Callable[[dict[str, np.ndarray]], np.ndarray]) -> None:
    """Require that a file's actions are the agent's."""
    inputs = policy.examples(rows=7)
    wanted = np.asarray(policy.act_rows(*inputs.values()))
    half_range = policy.spaces.scale.reshape(wanted.shape[1:]) * policy.spaces.bound
    apart = np.abs(act(inputs) - wanted) / np.maximum(half_range, 1e-12)
    # The median, for one rounding error can change which of two equal candidates is chosen.
    middle = float(np.median(apart.reshape(len(wanted), -1).max(axis=1)))
    if not middle <= TOLERANCE:
        raise UserError(
            f"the file's actions differ by {middle:.1g} from those of {policy.agent}, more than "
            f"{TOLERANCE:g}"
        )


WRITERS: dict[str, tuple[str, Callable[[TracedPolicy], bytes]]] = {
    "numpy": (".npz", to_numpy),
    "stablehlo": (".stablehlo", to_stablehlo),
    "onnx": (".onnx", to_onnx),
}
