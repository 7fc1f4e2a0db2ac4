"""Times of update and action, next to matrix products alone and a straightforward version."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from langevinrl.agents import Agent
from langevinrl.bench.loop import loop_overhead
from langevinrl.bench.plain import PLAIN, Plain
from langevinrl.bench.products import compile_products, find_products
from langevinrl.bench.timing import RepeatedAction, RepeatedUpdate, Timer, gemm_rate
from langevinrl.errors import UserError, unknown
from langevinrl.registry import METHODS
from langevinrl.storage.versions import versions
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update

SIZES = {"HalfCheetah": Spec(17, 6), "Humanoid": Spec(376, 17)}
BATCH, ENVS = 256, 5  # of the paper


@dataclass(frozen=True)
class Bench:
    """Time update and action of agents.

    An update is compared with its matrix products alone and, for nclql and sac, with a
    straightforward version of it.
    """

    agents: tyro.conf.Positional[tuple[str, ...]] = ()  # nclql and sac by default
    out: Path = Path("bench")  # folder for the results
    repeats: int = 15  # timed calls of each, interleaved; medians are shown
    # time one decision instead: predict and each exported form, on one core
    latency: tyro.conf.FlagCreatePairsOff[bool] = False
    calls: int = 2_000  # timed decisions of each form, with --latency


def draw_batch(agent: Agent, rows: int) -> Batch:
    """Return a random batch of an agent's sizes; its values do not affect the time."""
    spec, rng = agent.spec, np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    action = jnp.tanh(normal(rows, spec.act_dim)) * spec.act_bound
    extra = dict.fromkeys(agent.columns, action)
    obs, next_obs = normal(rows, spec.obs_dim), normal(rows, spec.obs_dim)
    places = jnp.arange(rows, dtype=jnp.int32)
    return Batch(obs, action, normal(rows), jnp.ones(rows), next_obs, places, extra)


def compile_pair(
    update: Callable[[PyTree, Batch, Key], Update],
    act: Callable[[PyTree, Array, Key], Array],
    state: PyTree,
    batch: Batch,
) -> tuple[Any, Any]:
    """Compile the update of a batch and the action for a vector of environments."""
    key, obs = jax.random.key(0), batch.obs[:ENVS]
    compiled = jax.jit(update, donate_argnums=0).lower(state, batch, key).compile()
    return compiled, jax.jit(act).lower(state, obs, key).compile()


def bench_agent(agent: Agent, plain: Plain | None, repeats: int, rows: int) -> dict[str, float]:
    """Measure milliseconds of update and action, and the memory of an update.

    Included are the update's matrix products alone and, if given, a straightforward version.
    """
    batch = draw_batch(agent, rows)
    state = jax.jit(agent.init)(jax.random.key(0))

    def explore(state: PyTree, obs: Array, key: Key) -> Array:
        return agent.policy(state, obs, agent.noise(key, len(obs)), explore=True)

    pairs = {"": compile_pair(agent.update, explore, state, batch)}
    if plain:
        plain_pair = partial(plain.update, agent), partial(plain.act, agent)
        pairs["plain "] = compile_pair(*plain_pair, state, batch)
    products = find_products(agent.update, state, batch, jax.random.key(0))
    calls: dict[str, Callable[[], Any]] = {
        "products": compile_products(products),
        "loop": loop_overhead(agent.spec, ENVS),
    }
    for name, (update, act) in pairs.items():
        copy = jax.tree.map(jnp.copy, state)  # an update takes its state's memory
        calls[f"{name}update"] = RepeatedUpdate(update, copy, batch)
        calls[f"{name}act"] = RepeatedAction(act, state, batch.obs[:ENVS])
    times = Timer(calls).run(repeats)
    for name, (update, _) in pairs.items():
        times[f"{name}update"] /= RepeatedUpdate.num_calls
        times[f"{name}act"] /= RepeatedAction.num_calls
        memory = update.memory_analysis()
        used = memory.temp_size_in_bytes + memory.argument_size_in_bytes
        times[f"{name}peak MB"] = used / 1e6
    times["products ratio"] = times["update"] / times["products"]
    times["gflop"] = sum(count * product.flops for product, count in products.items()) / 1e9
    if plain:
        times["ratio"] = times["update"] / times["plain update"]
    times["loop share"] = times["loop"] / (times["loop"] + times["update"] + times["act"])
    return times


def measure(config: Bench, sizes: dict[str, Spec] = SIZES) -> dict[str, Any]:
    """Time the chosen agents, print a table and write bench.json."""
    for name in config.agents:
        if name not in METHODS:
            raise UserError(unknown("agent", name, METHODS))
    console = Console()
    rows = []
    for name in config.agents or PLAIN:
        for task, spec in sizes.items():
            agent: Any = METHODS[name].load()(spec)
            batch_size = agent.run_defaults.get("batch_size", BATCH)
            with console.status(f"{name} at {task} sizes"):
                times = bench_agent(agent, PLAIN.get(name), config.repeats, batch_size)
            rows.append({"agent": name, "sizes": task} | times)
    result = {"gemm_gflops": gemm_rate(config.repeats), "rows": rows, "versions": versions()}
    config.out.mkdir(parents=True, exist_ok=True)
    (config.out / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(tabulate(rows))
    console.print(f"GEMM {result['gemm_gflops']:.0f} GFLOP/s.  {config.out / 'bench.json'}")
    return result


def tabulate(rows: list[dict[str, Any]]) -> Table:
    """Return a table that fits a terminal of eighty columns."""
    title = "Median milliseconds; an update next to its matrix products and a plain version"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = {
        "update": ("update", ".1f"), "products": ("matmul", ".1f"),
        "products ratio": ("ratio", ".2f"), "plain update": ("plain", ".1f"),
        "ratio": ("ratio", ".2f"), "act": ("act", ".1f"), "loop share": ("loop", ".1%"),
        "peak MB": ("MB", ".0f"),
    }  # fmt: skip
    table.add_column("agent")
    table.add_column("sizes")
    for head, _ in columns.values():
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        numbers = (f"{row[key]:{form}}" if key in row else "" for key, (_, form) in columns.items())
        table.add_row(row["agent"], row["sizes"], *numbers)
    return table
