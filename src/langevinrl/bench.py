"""How fast an update and an action are, beside a straightforward version of both, in one run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from langevinrl import networks, runlog
from langevinrl.agents import REGISTER, Agent
from langevinrl.errors import UserError
from langevinrl.learner import Learner
from langevinrl.runs.config import RunConfig, unknown
from langevinrl.runs.train import Run, StepInfo, metric_rows
from langevinrl.samplers import choose
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Transition, Update

SIZES = {"HalfCheetah": Spec(17, 6), "Humanoid": Spec(376, 17)}
BATCH, ENVS = 256, 5


@dataclass(frozen=True)
class Bench:
    """Time update and act beside a straightforward version of the same update."""

    agents: tyro.conf.Positional[tuple[str, ...]] = ()  # all, unless named
    out: Path = Path("bench")  # folder for bench.json
    repeats: int = 15  # timed calls of each, interleaved; medians are shown


@contextmanager
def straightforward() -> Iterator[None]:
    """What a first version would do: map over candidates, concatenate inputs, compute every loss.

    The same update otherwise, and the same numbers: the agent's own lines are traced again with the
    shared parts below them exchanged.  Activations are as in a textbook.  What is due so seldom
    that anyone would wait for it (DACER's mixtures) waits here too.
    """
    textbook = {
        "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)),
        "gelu": partial(jax.nn.gelu, approximate=False),
        "relu": jax.nn.relu,
    }
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(networks.MLP, "apply", _concatenated))
        stack.enter_context(mock.patch.object(networks, "ACTIVATIONS", textbook))
        stack.enter_context(mock.patch.object(choose, "BLOCK_ROWS", sys.maxsize))
        for name, module in list(sys.modules.items()):
            if name.startswith("langevinrl.agents.") and hasattr(module, "when"):
                stack.enter_context(mock.patch.object(module, "when", _always))
        yield


def _concatenated(mlp: networks.MLP, params: PyTree, *inputs: Array) -> Array:
    if any(x.ndim > 2 for x in inputs):  # candidates
        axes = [0 if x.ndim > 2 else None for x in inputs]
        return jax.vmap(partial(_concatenated, mlp, params), in_axes=axes)(*inputs)
    rows = jnp.broadcast_shapes(*(x.shape[:-1] for x in inputs))
    x = jnp.concatenate([jnp.broadcast_to(i, (*rows, i.shape[-1])) for i in inputs], axis=-1)
    weights = [jnp.concatenate(params["inputs"]), *(la["weight"] for la in params["layers"][1:])]
    for i, (weight, layer) in enumerate(zip(weights, params["layers"], strict=True)):
        x = networks.ACTIVATIONS[mlp.activation](x) if i else x
        x = x @ weight + networks.add_leading_axes(layer["bias"], x.ndim)
    return x


def _always(due: Array, step: Callable[[Learner], Learner], learner: Learner) -> Learner:
    return jax.tree.map(lambda new, old: jnp.where(due, new, old), step(learner), learner)


def compile_pair(agent: Agent, batch: Batch, obs: Array) -> tuple[Any, Any, PyTree]:
    """The compiled update and act, and a state to call them on."""
    key = jax.random.key(0)
    state = jax.jit(agent.init)(key)
    update = jax.jit(agent.update, donate_argnums=0).lower(state, batch, key).compile()
    act = jax.jit(lambda s, o, k: agent.act(s, o, k, explore=True)).lower(state, obs, key).compile()
    return update, act, state


def draw_batch(agent: Agent) -> Batch:
    """A batch of the sizes training uses; its values do not matter to the clock."""
    spec, rng = agent.spec, np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    action = jnp.tanh(normal(BATCH, spec.act_dim)) * spec.act_bound
    extra = dict.fromkeys(agent.columns, action)
    rows = jnp.arange(BATCH, dtype=jnp.int32)
    ones = jnp.ones(BATCH)
    obs, next_obs = normal(BATCH, spec.obs_dim), normal(BATCH, spec.obs_dim)
    return Batch(obs, action, normal(BATCH), ones, next_obs, rows, extra)


class Timer:
    """Calls of several functions, interleaved so that a noisy machine disturbs all alike."""

    def __init__(self, calls: dict[str, Callable[[], Any]]) -> None:
        self.calls = calls
        self.seconds: dict[str, list[float]] = {name: [] for name in calls}

    def run(self, repeats: int) -> dict[str, float]:
        """Median milliseconds of each."""
        for call in self.calls.values():
            jax.block_until_ready(call())  # type: ignore[no-untyped-call]
        for _ in range(repeats):
            for name, call in self.calls.items():
                began = time.perf_counter()
                jax.block_until_ready(call())  # type: ignore[no-untyped-call]
                self.seconds[name].append(time.perf_counter() - began)
        return {name: 1e3 * float(np.median(s)) for name, s in self.seconds.items()}


class Updating:
    """An update called again and again on its own result, since it reuses its input's memory.

    Two at a time: most policies step at every second update, and both kinds count.
    """

    num_calls = 2

    def __init__(self, update: Any, state: PyTree, batch: Batch) -> None:
        self.update, self.state, self.batch = update, state, batch
        self.key = jax.random.key(1)

    def __call__(self) -> PyTree:
        for _ in range(self.num_calls):
            self.state = self.update(self.state, self.batch, self.key).state
        return self.state


class Acting:
    """Several actions in a row: only the first finds a cold cache, whosever turn it is."""

    num_calls = 5

    def __init__(self, act: Any, state: PyTree, obs: Array) -> None:
        self.act, self.state, self.obs = act, state, obs
        self.key = jax.random.key(2)

    def __call__(self) -> Array:
        for _ in range(self.num_calls):
            action: Array = self.act(self.state, self.obs, self.key).block_until_ready()
        return action


def bench_agent(name: str, spec: Spec, repeats: int) -> dict[str, float]:
    agent: Any = REGISTER[name](spec)
    batch = draw_batch(agent)
    obs = batch.obs[:ENVS]
    update, act, state = compile_pair(agent, batch, obs)
    with straightforward():
        plain_update, plain_act, plain_state = compile_pair(agent, batch, obs)
    fixed = jax.tree.map(jnp.copy, state)
    times = Timer(
        {
            "update": Updating(update, state, batch),
            "plain update": Updating(plain_update, plain_state, batch),
            "act": Acting(act, fixed, obs),
            "plain act": Acting(plain_act, fixed, obs),
            "loop": loop_overhead(spec),
        }
    ).run(repeats)
    for kind, num_calls in (("update", Updating.num_calls), ("act", Acting.num_calls)):
        times[kind] /= num_calls
        times[f"plain {kind}"] /= num_calls
    times["ratio"] = times["update"] / times["plain update"]
    times["loop share"] = times["loop"] / (times["loop"] + times["update"] + times["act"])
    memory = [compiled.memory_analysis() for compiled in (update, plain_update)]
    times["peak MB"], times["plain peak MB"] = (
        (m.temp_size_in_bytes + m.argument_size_in_bytes) / 1e6 for m in memory
    )
    return times


@dataclass(frozen=True)
class Idle:
    """An agent that does nothing, so that what is left is the loop."""

    spec: Spec
    columns: ClassVar[dict[str, str]] = {}

    def init(self, key: Key) -> PyTree:
        return jnp.zeros(1)

    def act(self, state: PyTree, obs: Array, key: Key, *, explore: bool) -> Array:
        return jnp.zeros((len(obs), self.spec.act_dim))

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        # Every part of the batch is read, so that its way to the device is paid for.
        return Update(state, {"sum": sum((part.sum() for part in batch[:5]), jnp.zeros(()))})


class Still:
    """Environments that stand still."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.obs = spec, np.zeros((1, ENVS, spec.obs_dim), np.float32)

    def step(self, action: np.ndarray) -> Transition:
        flat = np.zeros((1, ENVS), np.float32)
        return Transition(self.obs, action, flat, flat, self.obs)


def loop_overhead(spec: Spec) -> Callable[[], None]:
    """One iteration of the real loop and its log with neither agent nor environment in it."""
    config = RunConfig("none", warmup=0, iterations=1, capacity=100_000)
    job = Run(config, Still(spec), Idle(spec))  # type: ignore[arg-type]
    for _ in range(100):
        job.replay.add(job.lanes.step(np.zeros((1, ENVS, spec.act_dim), np.float32)))

    def iterate() -> None:
        moment: StepInfo = job.advance()
        jax.block_until_ready(moment.metrics)  # type: ignore[no-untyped-call]
        if moment.iteration % config.log_every == 0:
            json.dumps(metric_rows(config, moment))

    return iterate


def gemm_rate(repeats: int) -> float:
    """Billions of multiply-adds x 2 a second on the products the networks are made of."""
    size, length = 256, 64
    x = jax.random.normal(jax.random.key(0), (size, size)) / size

    @jax.jit
    def chain(x: Array) -> Array:
        return jax.lax.scan(lambda y, _: (y @ x, None), x, None, length=length)[0]

    milliseconds = Timer({"gemm": lambda: chain(x)}).run(repeats)["gemm"]
    return 2 * size**3 * length / milliseconds / 1e6


def measure(asked: Bench) -> dict[str, Any]:
    """Time the agents asked for, print a table, write bench.json."""
    for name in asked.agents:
        if name not in REGISTER:
            raise UserError(unknown("agent", name, REGISTER))
    console = Console()
    rows = []
    for name in asked.agents or REGISTER:
        for task, spec in SIZES.items():
            with console.status(f"{name} at {task} sizes"):
                rows.append({"agent": name, "sizes": task} | bench_agent(name, spec, asked.repeats))
    result = {"gemm_gflops": gemm_rate(asked.repeats), "rows": rows, "versions": runlog.versions()}
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(_table(rows))
    console.print(f"GEMM {result['gemm_gflops']:.0f} GFLOP/s.  {asked.out / 'bench.json'}")
    return result


def _table(rows: list[dict[str, Any]]) -> Table:
    """Narrow enough for a terminal of eighty columns."""
    title = "Median milliseconds and peak MB, each beside a straightforward version"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = {
        "update": ("update", ".1f"), "plain update": ("plain", ".1f"), "ratio": ("ratio", ".2f"),
        "act": ("act", ".1f"), "plain act": ("plain", ".1f"), "loop share": ("loop", ".1%"),
        "peak MB": ("MB", ".0f"), "plain peak MB": ("plain", ".0f"),
    }  # fmt: skip
    table.add_column("agent")
    table.add_column("sizes")
    for head, _ in columns.values():
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        numbers = (f"{row[name]:{form}}" for name, (_, form) in columns.items())
        table.add_row(row["agent"], row["sizes"], *numbers)
    return table
