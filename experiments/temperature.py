"""Samples of a learned critic over w, compared with the exact policy: chains and particles.

From the root of the repository:

python experiments/temperature.py run     # settings.json, samplers.csv and critics.csv
python experiments/temperature.py draw    # samplers.png
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents.nclql import NCLQL
from langevinrl.analysis.tables import read_csv, write_csv
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.samplers.particles import NUM_PARTICLES, STAGES, STEP, sample_particles
from langevinrl.storage.versions import versions
from langevinrl.studies.bandit import env as bandit
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import each_seed, run_settings
from langevinrl.types import Array, PyTree

HERE = Path("results/temperature")
WEIGHTS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
SEEDS, UPDATES, SAMPLES, CELLS = 3, 12_000, 40_000, 200
BLOCK = 4_000  # samples drawn at a time
RATES = (
    (0.4, 2e-3),
    (0.65, 5e-4),
    (0.85, 1e-4),
    (1.0, 2e-5),
)  # learning rates, each until a part of the run


def settings() -> RunConfig:
    """Return the bandit study's NC-LQL with five levels, more updates and lower rates."""
    base = run_settings(BanditConfig(seed=20, seeds=SEEDS), "nclql")
    fields = {**base.hyperparameters, "num_levels": 5}
    length = UPDATES // base.updates_per_iteration
    return dataclasses.replace(base, hyperparameters=fields, iterations=length).resolved()


def train(config: RunConfig) -> tuple[NCLQL, PyTree]:
    with Run(config, env=partial(bandit.Bandit, bandit.BOUND)) as run:
        for part, rate in RATES:
            run.change_agent(learning_rate=rate)
            run.until(int(part * (config.iterations or 0)))
    assert isinstance(run.agent, NCLQL)
    return run.agent, run.state


def value_of(agent: NCLQL, params: PyTree, action: Array) -> Array:
    """Return the critics' mean at the clean level, for actions (..., 2)."""
    obs = jnp.zeros((*[1] * (action.ndim - 1), 1))
    return agent.critic.apply(params, obs, action, agent.clean).mean(axis=0)


def samplers(agent: NCLQL) -> dict[str, Callable[[PyTree, float, Array], Array]]:
    """Return functions that draw BLOCK actions at w: unit scores, full scores, particles."""

    def chain(state: PyTree, w: Array, key: Array, normalise: bool, steps: int) -> Array:
        # Full scores add up the members.  The step size is a tenth of the one that diverges.
        fields: dict[str, Any] = {"inverse_temperature": w, "steps_per_level": steps}
        if not normalise:
            fields |= {"inverse_temperature": w / 2, "step_size": 0.4 * bandit.MODE_STD**2 / w}
        sampler = dataclasses.replace(agent, normalise=normalise, **fields)
        return sampler.act(state, jnp.zeros((BLOCK, 1)), key, explore=True)

    def particles(state: PyTree, w: Array, key: Array) -> Array:
        def log_density(action: Array) -> Array:
            return w * value_of(agent, state.critic.params, action)

        return sample_particles(log_density, (BLOCK, 2), bandit.BOUND, key)[-1]

    return {
        "unit scores, 10 steps": jax.jit(lambda s, w, k: chain(s, w, k, True, 2)),
        "full scores, 50 steps": jax.jit(lambda s, w, k: chain(s, w, k, False, 10)),
        "particles, 48 gradients": jax.jit(particles),
    }


def run() -> None:
    config = settings()
    HERE.mkdir(parents=True, exist_ok=True)
    shown = {k: v for k, v in dataclasses.asdict(config).items() if k != "out"}
    smc = {"num_particles": NUM_PARTICLES, "stages": STAGES, "step": STEP}
    facts = {"run": shown, "rates": RATES, "particles": smc, "samples": SAMPLES}
    text = json.dumps(facts | {"versions": versions()}, indent=1)
    (HERE / "settings.json").write_text(text + "\n")
    agent, states = train(config)
    rows, critics = [], []
    for seed, state in each_seed(BanditConfig(seed=20, seeds=SEEDS), states):
        critics += [{"seed": seed, **row} for row in judge_critic(agent, state)]
        for name, draw in samplers(agent).items():
            for w in WEIGHTS:
                keys = jax.random.split(jax.random.key(seed), SAMPLES // BLOCK)
                actions = np.concatenate([np.asarray(draw(state, w, key)) for key in keys])
                distance = bandit.soft_policy(w).total_variation(actions)
                rows.append({"sampler": name, "seed": seed, "w": w, "total_variation": distance})
                print(*rows[-1].values(), flush=True)
            write_csv(HERE / "samplers.csv", rows)
    for w in WEIGHTS:
        exact = bandit.soft_policy(w)
        distance = exact.total_variation(exact.sample(SAMPLES, np.random.default_rng(0)))
        rows.append({"sampler": "exact samples", "seed": 0, "w": w, "total_variation": distance})
    write_csv(HERE / "samplers.csv", rows)
    write_csv(HERE / "critics.csv", critics)


def judge_critic(agent: NCLQL, state: PyTree) -> list[dict[str, float]]:
    """Return the distance of the learned critic's exact policy to the true one."""
    edges = np.linspace(-bandit.BOUND, bandit.BOUND, CELLS + 1)
    density = bandit.Density((edges[1:] + edges[:-1]) / 2, np.empty(0))
    points = jnp.asarray(density.actions, jnp.float32)
    value = np.asarray(value_of(agent, state.critic.params, points), np.float64)
    error = float(np.sqrt(np.mean((value - bandit.reward(density.actions)) ** 2)))
    rows = []
    for w in WEIGHTS:
        mass = np.exp(w * (value - value.max()))
        own = density._replace(mass=(mass / mass.sum()).reshape(CELLS, CELLS))
        apart = np.abs(own.coarse(25) - bandit.soft_policy(w).coarse(25)).sum() / 2
        rows.append({"w": w, "rmse": error, "total_variation": float(apart)})
    return rows


def draw() -> None:
    from langevinrl.analysis.figures import pyplot

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    rows = read_csv(HERE / "samplers.csv")
    rows += [
        row | {"sampler": "learned critic's exact policy"} for row in read_csv(HERE / "critics.csv")
    ]
    for name in dict.fromkeys(row["sampler"] for row in rows):
        at: dict[float, list[float]] = {}
        for row in rows:
            if row["sampler"] == name:
                at.setdefault(float(row["w"]), []).append(float(row["total_variation"]))
        dash = ":" if "exact" in name else "-"
        (line,) = axis.plot(
            list(at), [np.mean(v) for v in at.values()], dash, marker="o", label=name
        )
        for w, values in at.items():
            axis.plot([w, w], [min(values), max(values)], lw=1, color=line.get_color(), alpha=0.6)
    axis.axhline(0.1, color="grey", lw=0.8)
    axis.set(xscale="log", ylim=(0, 1), xlabel="w", ylabel="total variation to exp(w r) / Z")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "samplers.png", dpi=150)


if __name__ == "__main__":
    {"run": run, "draw": draw}[sys.argv[1]]()
