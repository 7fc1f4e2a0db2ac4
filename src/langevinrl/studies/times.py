"""The time table: time of an iteration of each method on Humanoid, relative to NC-LQL.

An iteration is one update of a batch of 256 and one action for 5 environments.  All methods take
turns in one process, so that other load affects all equally.  Environment steps are not included:
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
from langevinrl.bench.timing import RepeatedAction, RepeatedUpdate, Timer
from langevinrl.registry import METHODS, label_of
from langevinrl.studies.parameters import HUMANOID
from langevinrl.studies.study import AGENTS
from langevinrl.types import Spec


def time_table(
    names: Sequence[str] = AGENTS,
    spec: Spec = HUMANOID,
    repeats: int = 9,
    rows: int = BATCH,
) -> list[Row]:
    """Time each method; return milliseconds, the ratio to NC-LQL, and the paper's ratio."""
    calls: dict[str, Callable[[], Any]] = {}
    console = Console()
    for name in names:
        with console.status(f"compiling {label_of(name)}"):
            agent = METHODS[name].load()(spec)
            batch = draw_batch(agent, rows)
            state = jax.jit(agent.init)(jax.random.key(0))
            explore = partial(agent.act, explore=True)
            update, act = compile_pair(agent.update, explore, state, batch)
        calls[f"{name} act"] = RepeatedAction(
            act, jax.tree.map(jax.numpy.copy, state), batch.obs[:ENVS]
        )
        calls[f"{name} update"] = RepeatedUpdate(update, state, batch)
    with console.status("timing"):
        times = Timer(calls).run(repeats)
    unit = _milliseconds(times, "nclql")
    return [
        {
            "method": label_of(name),
            "ms_per_update": f"{times[f'{name} update'] / RepeatedUpdate.num_calls:.1f}",
            "ms_per_action": f"{times[f'{name} act'] / RepeatedAction.num_calls:.2f}",
            "ratio": f"{_milliseconds(times, name) / unit:.3f}",
            "paper": f"{HUMANOID_TIME[name]:.3f}" if name in HUMANOID_TIME else "",
        }
        for name in names
    ]


def _milliseconds(times: dict[str, float], name: str) -> float:
    """Return the time of an iteration: update and action."""
    update = times[f"{name} update"] / RepeatedUpdate.num_calls
    return update + times[f"{name} act"] / RepeatedAction.num_calls
