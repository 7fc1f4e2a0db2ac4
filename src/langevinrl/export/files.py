"""A run folder's policy in, one file out."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from langevinrl.envs.factory import EnvLike, as_factory, identify
from langevinrl.errors import UserError, unknown
from langevinrl.policies.chain import act
from langevinrl.policies.methods import describe
from langevinrl.policies.tables import Box, Facts, Policy, to_json
from langevinrl.runs.saved import read_model
from langevinrl.storage.files import require_no_link
from langevinrl.types import Array

Format: TypeAlias = Literal["numpy", "stablehlo", "onnx"]
PLATFORMS = ("cpu", "cuda", "tpu")  # that a StableHLO file can be run on
TOLERANCE = 1e-4  # between an ONNX model and the chain it was made of, in the chain's box


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

    `format` is numpy (.npz), stablehlo or onnx; `out` is policy.npz and so on in the folder unless
    told; `seed_index` counts the seeds trained side by side; `env` is the task itself, in a folder
    that does not know its spaces; `trust` allows an agent of someone's own that it names.

    `changes` are fields that need no training again, by name:
    best_of, steps_per_level and num_levels (NC-LQL), num_steps (LQL, QSM), flow_steps (MFP).

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
) -> Policy:
    """The tables of one trained seed's policy, from a run or a saved model."""
    source = None if env is None else identify(env)._replace(factory=as_factory(env))
    saved = read_model(folder, source, trust)
    if not 0 <= seed_index < saved.config.seeds:
        raise UserError(f"seed_index is {seed_index}; trained seeds: {saved.config.seeds}")
    state = jax.tree.map(lambda leaf: leaf[seed_index], saved.state)
    box = Box(saved.spaces.centre, saved.spaces.scale)
    return describe(saved.agent, state, box, changes)


def to_numpy(policy: Policy) -> bytes:
    """An .npz without pickle: the tables and, as `facts`, JSON."""
    file = BytesIO()
    np.savez(file, facts=np.array(json.dumps(to_json(policy.facts))), **policy.arrays)  # type: ignore[arg-type]  # names are ours
    return file.getvalue()


def to_stablehlo(policy: Policy) -> bytes:
    """A serialised `jax.export` of (obs, noise), or of obs alone; any number of rows."""
    (rows,) = jax.export.symbolic_shape("rows")
    shapes = input_shapes(policy.facts, rows)
    inputs = [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]  # type: ignore[no-untyped-call]
    chain = jax.jit(pure_function(policy))
    try:
        return bytes(jax.export.export(chain, platforms=PLATFORMS)(*inputs).serialize())
    except ImportError as error:
        raise UserError(
            "StableHLO needs flatbuffers, which is not installed: "
            "pip install 'langevinrl[stablehlo]'"
        ) from error


def to_onnx(policy: Policy) -> bytes:
    """An ONNX model with inputs obs and noise and output action, tried in ONNX Runtime."""
    try:
        import jax2onnx
        import onnxruntime
    except ImportError as error:
        raise UserError(
            f"ONNX needs {error.name}, which is not installed: pip install 'langevinrl[onnx]'"
        ) from error
    shapes, agent = input_shapes(policy.facts, "B"), policy.facts.agent
    names = {"input_names": ["obs", "noise"][: len(shapes)], "output_names": ["action"]}
    function = pure_function(policy, unroll=True)
    try:
        model = jax2onnx.to_onnx(function, shapes, model_name=f"langevinrl_{agent}", **names)
    except Exception as error:  # of many kinds, of a converter that is not ours
        raise UserError(f"jax2onnx cannot carry {agent}: {error}") from error
    entry = model.metadata_props.add()
    entry.key, entry.value = "facts", json.dumps(to_json(policy.facts))
    content = bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _check_onnx(policy, function, session)
    return content


def _check_onnx(policy: Policy, function: Callable[..., Array], session: Any) -> None:
    """Refuses a model whose actions are not those of the chain it was made of."""
    rng, facts = np.random.default_rng(0), policy.facts
    worst = 0.0
    for batch in (1, 3):
        obs = rng.standard_normal((batch, facts.obs_dim)).astype(np.float32)
        noise = rng.uniform(-1, 1, (batch, *facts.noise_shape)).astype(np.float32)
        fed = {"obs": obs, "noise": noise} if facts.num_draws else {"obs": obs}
        (action,) = session.run(None, fed)
        apart = (action - np.asarray(function(*fed.values()))) / policy.arrays["stretch"]
        worst = max(worst, float(np.abs(apart).max()))
    if not worst <= TOLERANCE:
        raise UserError(
            f"ONNX cannot carry this {facts.agent}: its actions differ by {worst:.1g} from the "
            f"chain's, more than {TOLERANCE:g}"
        )


def input_shapes(facts: Facts, rows: Any) -> list[tuple[Any, ...]]:
    """Shapes of the inputs, obs and, if the policy draws any, noise; `rows` may be a name."""
    obs, noise = (rows, facts.obs_dim), (rows, *facts.noise_shape)
    return [obs, noise] if facts.num_draws else [obs]


def pure_function(policy: Policy, *, unroll: bool = False) -> Callable[..., Array]:
    """The policy of (obs, noise), or of obs alone if it draws none; its weights are constants."""
    facts = policy.facts
    constants = {name: jnp.asarray(array) for name, array in policy.arrays.items()}

    def chain(obs: Array, noise: Array) -> Array:
        # Behind a barrier, or XLA keeps the weights twice, turned for the way back as well, and
        # both no longer fit the cache.  An unrolled chain is not for XLA.
        tables = constants
        if not unroll:
            tables = jax.lax.optimization_barrier(constants)  # type: ignore[no-untyped-call]
        return act(facts, tables, obs, noise, unroll=unroll)

    if facts.num_draws:
        return chain
    return lambda obs: chain(obs, jnp.zeros((obs.shape[0], *facts.noise_shape)))


WRITERS: dict[str, tuple[str, Callable[[Policy], bytes]]] = {
    "numpy": (".npz", to_numpy),
    "stablehlo": (".stablehlo", to_stablehlo),
    "onnx": (".onnx", to_onnx),
}
