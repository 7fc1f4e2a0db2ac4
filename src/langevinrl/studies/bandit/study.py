"""The whole study: train, measure, write tables, draw figures."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from rich.console import Console

from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.errors import UserError
from langevinrl.registry import label_of
from langevinrl.storage.versions import versions
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.chains import follow_chains, sample
from langevinrl.studies.bandit.figures import draw_figures
from langevinrl.studies.bandit.measure import exact_policy, measure
from langevinrl.studies.bandit.page import write_page
from langevinrl.studies.bandit.scores import exact_scores
from langevinrl.studies.bandit.settings import TRAININGS, BanditConfig
from langevinrl.studies.bandit.sweep import best_w, sweep_direction, sweep_gradient
from langevinrl.studies.bandit.table import gather, print_table
from langevinrl.studies.bandit.training import each_seed, run_settings, train
from langevinrl.studies.bandit.values import GRID, compare_values, smoothed_by
from langevinrl.types import Spec

Tables = dict[str, list[Row]]


def run_study(config: BanditConfig) -> Path:
    """Run the study, write everything into `config.out`, and return that folder."""
    config, console, began = config.resolved(), Console(markup=False), time.monotonic()
    (config.out / "data").mkdir(parents=True, exist_ok=True)
    _write_settings(config)
    _write_exact(config)
    seeds = f"{config.seeds} seed{'s' * (config.seeds > 1)}"
    console.print(f"{len(config.methods)} methods, {seeds} each", highlight=False)
    found: dict[str, Tables] = {}
    for name, tables, seconds in _examine_all(config):
        found[name] = tables
        total = np.mean([row["sum"] for row in tables["seeds"]])
        console.print(
            f"{label_of(name):7} near the high modes {total:.3f}   {seconds:4.0f} s   "
            f"{len(found)}/{len(config.methods)} methods after {time.monotonic() - began:.0f} s",
            highlight=False,
        )
    tables = gather(config, found)
    for name, rows in tables.items():
        write_csv(config.out / f"{name}.csv", rows)
    print_table(tables["table"], console)
    write_page(config.out)
    try:
        draw_figures(config.out)
    except UserError as problem:  # matplotlib is missing
        console.print(f"No figures: {problem}, and run the study again.")
    console.print(f"{config.out}  {time.monotonic() - began:.0f} s", highlight=False)
    return config.out


def _examine_all(config: BanditConfig) -> Iterator[tuple[str, Tables, float]]:
    """Yield each method's name, tables and seconds, as they finish."""
    if config.workers == 1:
        yield from (_examine(config, name) for name in config.methods)
        return
    # Spawned: a forked process would inherit locks of JAX's threads and hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(config.workers, context, _set_flags, (config.quick,)) as pool:
        jobs = [pool.submit(_examine, config, name) for name in config.methods]
        for job in as_completed(jobs):
            yield job.result()


def _set_flags(quick: bool) -> None:
    """Keep this process to one core, so that workers do not compete."""
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false"]
    if quick:  # most of the time is compilation
        flags.append("--xla_backend_optimization_level=0")
    os.environ["XLA_FLAGS"] = " ".join(flags)  # read when JAX first computes


def _examine(config: BanditConfig, name: str) -> tuple[str, Tables, float]:
    """Train and measure one method, and write the arrays of its figures to data/NAME.npz."""
    began, method = time.monotonic(), TRAININGS[name]
    agent, states = train(config, name)
    # Training may use several candidates; choosing among them would hide the modes it covers.
    agent = dataclasses.replace(agent, best_of=1)  # type: ignore[type-var]
    tables: Tables = {}
    arrays: dict[str, np.ndarray] = {}
    if isinstance(agent, LQL | NCLQL):
        tables["smoothing"], arrays["value"] = compare_values(agent, states, config, name)
        tables["sweep"], swept = sweep_direction(agent, states, config, name)
        agent = dataclasses.replace(agent, inverse_temperature=best_w(tables["sweep"]))
        tables["sweep"] += sweep_gradient(agent, states, config, name)
        arrays |= swept
    tables["seeds"] = []
    for seed, state in each_seed(config, states):
        actions = sample(agent, state, config, seed, method.explore)
        w = agent.policy_weight(state)
        row = measure(actions, None if w is None else float(w), config.bound)
        tables["seeds"].append({"method": name, "seed": seed} | row)
    arrays |= follow_chains(agent, next(each_seed(config, states))[1], config)
    _write_arrays(config.out / "data" / f"{name}.npz", arrays)
    return name, tables, time.monotonic() - began


def _write_settings(config: BanditConfig) -> None:
    """Write every field of every run and all versions, since defaults may change."""
    runs = {name: dataclasses.asdict(run_settings(config, name)) for name in config.methods}
    for name, run in runs.items():
        run["finish"] = TRAININGS[name].finish
        del run["out"]  # nothing is written there
    fields = dataclasses.asdict(config)
    del fields["out"]  # the folder of this file
    text = json.dumps({"study": fields, "runs": runs}, indent=1)
    (config.out / "settings.json").write_text(text + "\n")
    (config.out / "versions.json").write_text(json.dumps(versions(), indent=2) + "\n")


def _write_exact(config: BanditConfig) -> None:
    """Write the task, its soft policies, smoothed values and scores to data/exact.npz."""
    axis = np.linspace(-config.bound, config.bound, GRID)
    arrays = {
        "bound": np.array(config.bound),
        "centres": env.CENTRES,
        "high": np.array(list(env.HIGH_MODES.values())),
        "near": np.array(env.NEAR),
        "axis": axis,
        "reward": env.reward_map(axis),
        "sweep": np.array(config.sweep),
        "policies": np.stack([exact_policy(w, config.bound).coarse(100) for w in config.sweep]),
    }
    if "nclql" in config.methods:
        agent = run_settings(config, "nclql").make_agent(Spec(1, 2, config.bound))
        assert isinstance(agent, NCLQL)
        sigmas, points = smoothed_by(agent), env.grid(config.bound, GRID)
        exact = [env.smoothed_value(points, sigma, config.bound) for sigma in sigmas]
        arrays |= exact_scores(sigmas, config.bound)
        arrays["sigmas"] = np.array(sigmas)
        arrays["smoothed"] = np.stack(exact)
    _write_arrays(config.out / "data" / "exact.npz", arrays)


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    packed = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    np.savez_compressed(path, **packed)  # type: ignore[arg-type]
