"""Time of one decision: `predict` and every exported form, relative to a plain jitted chain.

All forms are timed in turns of a few calls, in a separate process that is pinned to one core from
its first import on: a library that counted two cores would start two threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from langevinrl.bench.loop import NullEnv
from langevinrl.bench.plain import nclql_act
from langevinrl.envs.spaces import TaskSpaces, require_box
from langevinrl.errors import UserError
from langevinrl.export import NumpyPolicy, export
from langevinrl.model import Model
from langevinrl.runs.config import RunConfig
from langevinrl.runs.policy import observation_seed
from langevinrl.runs.saved import write_model
from langevinrl.storage.versions import versions
from langevinrl.types import Array, PyTree, Spec

CHEETAH = Spec(17, 6)
PLAIN = "plain chain"
IN_A_ROW = 10  # calls of one form in a row, since only the first has a cold cache
OBSERVATIONS = 64  # different ones, in turn
Decide = Callable[[np.ndarray], np.ndarray]
REPORT = "latency: "  # before the line of JSON that the timing process ends with


def half_cheetah() -> NullEnv:
    """Make an environment of HalfCheetah's sizes that does nothing."""
    return NullEnv(CHEETAH)


def measure_latency(out: Path, calls: int) -> dict[str, Any]:
    """Time a decision on one core, print a table and write latency.json."""
    if calls < IN_A_ROW:
        raise UserError(f"{calls} calls are too few to time; expected at least {IN_A_ROW}")
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if not hasattr(os, "sched_setaffinity"):
        raise UserError("--latency needs Linux: this system cannot pin a process to one core")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})  # the process below inherits it
    try:
        words = [sys.executable, "-m", "langevinrl.bench.latency", str(calls)]
        done = subprocess.run(words, env=os.environ | threads, stdout=subprocess.PIPE, text=True)
    finally:
        os.sched_setaffinity(0, allowed)
    lines = [line for line in done.stdout.splitlines() if line.startswith(REPORT)]
    if done.returncode or not lines:
        raise UserError("the process that times decisions failed; its output is above")
    result: dict[str, Any] = json.loads(lines[-1].removeprefix(REPORT))
    out.mkdir(parents=True, exist_ok=True)
    (out / "latency.json").write_text(json.dumps(result, indent=2) + "\n")
    console = Console()
    console.print(tabulate(result["rows"]))
    console.print(f"{calls} calls of each, on one core.  {out / 'latency.json'}")
    return result


def time_decisions(forms: dict[str, Decide], obs: np.ndarray, calls: int) -> list[dict[str, Any]]:
    """Measure p50 and p99 of each form in microseconds, and p50 relative to the plain chain."""
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for decide in forms.values():
        for row in obs[:IN_A_ROW]:
            decide(row)  # compiled, and warm
    for turn in range(calls // IN_A_ROW):
        for name, decide in forms.items():
            for i in range(IN_A_ROW):
                row = obs[(turn * IN_A_ROW + i) % len(obs)]
                began = time.perf_counter()
                decide(row)
                seconds[name].append(time.perf_counter() - began)
    plain = float(np.median(seconds[PLAIN]))
    return [
        {
            "form": name,
            "p50": 1e6 * float(np.median(taken)),
            "p99": 1e6 * float(np.percentile(taken, 99)),
            "ratio": float(np.median(taken)) / plain,
        }
        for name, taken in seconds.items()
    ]


def untrained_model(folder: Path, **hyperparameters: Any) -> Model:
    """Save and load an NC-LQL model of HalfCheetah's sizes with initial weights."""
    name = "langevinrl.bench.latency:half_cheetah"
    config = RunConfig(name, iterations=1, hyperparameters=hyperparameters).resolved()
    agent = config.make_agent(CHEETAH)
    state = jax.jit(jax.vmap(agent.init))(jax.random.key(0)[None])
    env = half_cheetah()
    spaces = TaskSpaces(env.observation_space, require_box(env.action_space, name))
    write_model(folder, config, spaces, state, iteration=0)
    return Model.load(folder)


def plain_chain(agent: Any, state: PyTree) -> Decide:
    """Return the jitted chain of `bench.plain` as a function of one observation."""

    @jax.jit
    def act(state: PyTree, obs: Array, seed: Array) -> Array:
        return nclql_act(agent, state, obs[None], jax.random.key(seed))[0]

    # Weights only: passing the optimiser state as well would take longer.
    light = state._replace(critic=state.critic._replace(target_params=None, opt_state=None))
    return lambda obs: np.asarray(act(light, obs, observation_seed(obs)))


def exported_forms(folder: Path) -> dict[str, Decide]:
    """Return the exported files as functions, with the time to draw noise included."""
    policy = NumpyPolicy(export(folder, "numpy"), seed=0)
    forms: dict[str, Decide] = {"numpy": policy}
    if find_spec("flatbuffers"):
        loaded = jax.export.deserialize(bytearray(export(folder, "stablehlo").read_bytes()))
        compiled = jax.jit(loaded.call)
        forms["stablehlo"] = lambda obs: np.asarray(compiled(obs[None], policy.draw_noise()))[0]
    if not find_spec("onnx"):
        return forms
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(export(folder, "onnx")), options, providers)
    forms["onnx"] = partial(_run_session, session, policy)
    return forms


def _run_session(session: Any, policy: NumpyPolicy, obs: np.ndarray) -> np.ndarray:
    (action,) = session.run(None, {"obs": obs[None], **policy.draw_noise()})
    return np.asarray(action[0])


def tabulate(rows: list[dict[str, Any]]) -> Table:
    """Return a table with one row per form."""
    table = Table(title="One decision, NC-LQL at HalfCheetah sizes", box=box.SIMPLE_HEAD)
    table.add_column("form")
    for head in ("p50 µs", "p99 µs", "p50 ÷ plain"):
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(row["form"], f"{row['p50']:.0f}", f"{row['p99']:.0f}", f"{row['ratio']:.2f}")
    return table


def main(calls: int) -> None:
    """Time all forms in this process and print one line of JSON."""
    obs = np.random.default_rng(0).standard_normal((OBSERVATIONS, CHEETAH.obs_dim))
    with TemporaryDirectory() as place:
        model = untrained_model(Path(place))
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], model.state)
        forms: dict[str, Decide] = {PLAIN: plain_chain(model.agent, state)}
        forms["predict"] = lambda row: model.predict(row)[0]
        forms |= exported_forms(Path(place))
        rows = time_decisions(forms, obs.astype(np.float32), calls)
    print(REPORT + json.dumps({"rows": rows, "calls": calls, "versions": versions()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
