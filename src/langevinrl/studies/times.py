"""The time table: what an iteration of each method costs on Humanoid, relative to NC-LQL.

Timed are one update of a batch of 256 and one action for 5 environments, all methods in turn, in
one process on all cores, so that what disturbs one disturbs all.  Environment steps are left out:
they are the same for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
from rich.console import Console

from langevinrl.analysis.paper import HUMANOID_TIME
from langevinrl.analysis.tables import Row
from langevinrl.bench.agents import BATCH, ENVS, compile_pair, draw_batch
from langevinrl.bench.timing import Acting, Timer, Updating
from langevinrl.registry import METHODS, label_of
from langevinrl.studies.parameters import HUMANOID
from langevinrl.types import Spec


def time_table(
    names: Sequence[str] = tuple(METHODS),
    spec: Spec = HUMANOID,
    repeats: int = 9,
    rows: int = BATCH,
) -> list[Row]:
    """A row per method: milliseconds, ratio to NC-LQL, and the paper's ratio where it lists one."""
    calls: dict[str, Callable[[], Any]] = {}
    console = Console()
    for name in names:
        with console.status(f"compiling {label_of(name)}"):
            agent = METHODS[name].load()(spec)
            batch = draw_batch(agent, rows)
            state = jax.jit(agent.init)(jax.random.key(0))
            explore = partial(agent.act, explore=True)
            update, act = compile_pair(agent.update, explore, state, batch)
        calls[f"{name} act"] = Acting(act, jax.tree.map(jax.numpy.copy, state), batch.obs[:ENVS])
        calls[f"{name} update"] = Updating(update, state, batch)
    with console.status("timing"):
        times = Timer(calls).run(repeats)
    unit = _milliseconds(times, "nclql")
    return [
        {
            "method": label_of(name),
            "ms_per_update": f"{times[f'{name} update'] / Updating.num_calls:.1f}",
            "ms_per_action": f"{times[f'{name} act'] / Acting.num_calls:.2f}",
            "ratio": f"{_milliseconds(times, name) / unit:.3f}",
            "paper": f"{HUMANOID_TIME[name]:.3f}" if name in HUMANOID_TIME else "",
        }
        for name in names
    ]


def _milliseconds(times: dict[str, float], name: str) -> float:
    """An iteration: its update and its action."""
    update = times[f"{name} update"] / Updating.num_calls
    return update + times[f"{name} act"] / Acting.num_calls
