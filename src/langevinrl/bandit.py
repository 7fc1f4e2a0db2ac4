"""The 2D bandit study: every method trained, sampled, and held against the exact soft policy."""

from __future__ import annotations

import csv
import dataclasses
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from langevinrl.agents import REGISTER, Agent
from langevinrl.agents.dacer import DACER
from langevinrl.agents.dipo import DIPO
from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.lql import LQL
from langevinrl.agents.mfp import MFP
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.qsm import QSM
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sac import SAC
from langevinrl.agents.sdac import SDAC
from langevinrl.bandit_settings import CHAIN_STEPS, COMMON, METHODS, SEARCH, SWEEP, WARMUP
from langevinrl.config import RunConfig, unknown
from langevinrl.envs import bandit as env
from langevinrl.errors import UserError
from langevinrl.samplers.diffusion import denoise, make_schedule, reverse
from langevinrl.samplers.flow import integrate
from langevinrl.samplers.langevin import Chain, annealed_plan, constant_plan, draw, geometric_sigmas
from langevinrl.train import Run
from langevinrl.types import Array, Key, PyTree, Spec

Row = dict[str, Any]
MODES = list(env.HIGH_MODES)
GRID = 65  # points along an axis of the value maps
INNER = 1.7  # half-width of the square in which a learned value is held against the exact one
NEAREST = np.geomspace(0.5, 500.0, 49).tolist()  # w tried for the exact law nearest to samples
WALKERS = 300  # chains that the page shows
RAW_LIMIT = 100.0  # the largest w at which the full gradient is walked; beyond, modes are points
ENVS, UPDATES = 10, 10  # environments and updates of an iteration: one fresh action per update


@dataclass(frozen=True)
class BanditConfig:
    """The 2D bandit study: trains, samples and measures every method, and draws the figures."""

    out: Path = Path("runs/bandit")  # folder for the table, the data, the figures and the page
    methods: tuple[str, ...] = ()  # which methods to study; all of them unless told
    seed: int = 0  # first seed
    seeds: int = 5  # seeds per method
    samples: int = 10_000  # actions drawn from each trained policy
    bound: float = env.BOUND  # half-width of the action box
    sweep: tuple[float, ...] = SWEEP  # w at which LQL and NC-LQL are sampled
    workers: int = 2  # methods trained at a time, each in a process of its own; 1: all in this one
    quick: bool = False  # one seed, a tenth of the training, fewer samples: a look, not a result

    def settled(self) -> BanditConfig:
        """The same study with every default spelled out, checked."""
        for name in self.methods:
            if name not in METHODS:
                raise UserError(unknown("bandit method", name, METHODS))
        methods = self.methods or tuple(name for name in METHODS if name in REGISTER)
        if not self.quick:
            return dataclasses.replace(self, methods=methods)
        few = tuple(w for w in self.sweep if w in (1.0, 10.0, 100.0, 300.0)) or self.sweep[:1]
        return dataclasses.replace(
            self, methods=methods, seeds=1, samples=min(self.samples, 2_000), sweep=few
        )

    @property
    def run_seeds(self) -> list[int]:
        return list(range(self.seed, self.seed + self.seeds))


def study(config: BanditConfig) -> Path:
    """Everything the study shows, into `config.out`: returns it."""
    config, console, began = config.settled(), Console(), time.monotonic()
    data = config.out / "data"
    data.mkdir(parents=True, exist_ok=True)
    _write_settings(config)
    found: dict[str, dict[str, list[Row]]] = {}
    for name, tables, seconds in _examine_all(config):
        found[name] = tables
        total = np.mean([row["sum"] for row in tables["seeds"]])
        console.print(
            f"{METHODS[name].label:7} near the high modes {total:.3f}   {seconds:4.0f} s   "
            f"{len(found)}/{len(config.methods)} methods after {time.monotonic() - began:.0f} s",
            highlight=False,
        )
    tables = _gather(config, found)
    tables["search"] = list(_search(config))
    for name, rows in tables.items():
        _write_csv(config.out / f"{name}.csv", rows)
    _print_table(tables["table"], console)
    _draw(config.out, console)
    console.print(f"{config.out}  {time.monotonic() - began:.0f} s", highlight=False)
    return config.out


def _draw(out: Path, console: Console) -> None:
    from langevinrl.bandit_figures import draw_figures
    from langevinrl.bandit_page import write_page

    write_page(out)
    try:
        draw_figures(out)
    except ImportError:
        console.print("No figures: pip install 'langevinrl[plots]' and run the study again.")


def _examine_all(config: BanditConfig) -> Iterator[tuple[str, dict[str, list[Row]], float]]:
    """Each method's tables, as they come."""
    if config.workers == 1:
        yield from (_examine(config, name) for name in config.methods)
        return
    # A fresh process each: a forked one would inherit this one's compiler threads, stuck.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(config.workers, mp_context=context) as pool:
        jobs = [pool.submit(_examine, config, name) for name in config.methods]
        for job in as_completed(jobs):
            yield job.result()


def _examine(config: BanditConfig, name: str) -> tuple[str, dict[str, list[Row]], float]:
    """Train one method, measure it, and leave what the figures need in data/NAME.npz."""
    began, method = time.monotonic(), METHODS[name]
    agent, states = train(config, name)
    # Training may need several candidates; their choice would hide which modes the policy covers.
    agent = dataclasses.replace(agent, best_of=1)  # type: ignore[type-var]
    draws = [sample(agent, s, config, seed, method.explore) for seed, s in _seeds(config, states)]
    rows = [
        {"method": name, "seed": seed}
        | measure(actions, own_temperature(agent, state), config.bound)
        for (seed, state), actions in zip(_seeds(config, states), draws, strict=True)
    ]
    tables, arrays = {"seeds": rows}, _paths(agent, next(_seeds(config, states))[1], config)
    arrays["samples"] = draws[0]
    if isinstance(agent, LQL | NCLQL):
        tables["smoothing"], arrays["value"] = _values(agent, states, config, name)
        tables["sweep"], arrays["swept"], arrays["walks"] = _sweep(agent, states, config, name)
        tables["sweep"] += _raw_sweep(agent, states, config, name)
    packed = {key: np.asarray(value, np.float32) for key, value in arrays.items()}
    np.savez_compressed(config.out / "data" / f"{name}.npz", **packed)  # type: ignore[arg-type]
    return name, tables, time.monotonic() - began


def train(config: BanditConfig, name: str) -> tuple[Agent, PyTree]:
    """The agent and its trained states, one per seed (S, ...), by the loop all tasks share."""
    run_config = run_settings(config, name)
    job = Run.of(run_config, partial(env.Bandit, config.bound))
    job.lanes.reset()
    while job.iteration < (run_config.iterations or 0):
        job.advance()
    job.lanes.close()
    return job.agent, job.state


def run_settings(config: BanditConfig, name: str) -> RunConfig:
    """The run that trains a method: uniform actions throughout, in a box as wide as the task's."""
    method = METHODS[name]
    shorter = 10 if config.quick else 1
    return RunConfig(
        env="langevinrl.envs.bandit:make",
        agent=name,
        hyperparameters=COMMON | method.hyperparameters,
        iterations=method.updates // UPDATES // shorter,
        seed=config.seed,
        seeds=config.seeds,
        num_envs=ENVS,
        updates_per_iteration=UPDATES,
        action_bound=config.bound,
        random_actions=True,
        warmup=WARMUP // shorter,
        batch_size=method.batch_size,
        capacity=WARMUP + method.updates,
    ).resolved()


def _seeds(config: BanditConfig, states: PyTree) -> Iterator[tuple[int, PyTree]]:
    for i, seed in enumerate(config.run_seeds):
        yield seed, jax.tree.map(lambda x, i=i: x[i], states)


def _obs(num: int) -> Array:
    return jnp.zeros((num, 1))


def _key(seed: int, purpose: int) -> Key:
    return jax.random.fold_in(jax.random.key(seed), purpose)


def sample(
    agent: Agent, state: PyTree, config: BanditConfig, seed: int, explore: bool
) -> np.ndarray:
    """Actions of one trained policy, (samples, 2), each with noise of its own."""
    act = _compiled_act(agent, config.samples, explore)  # type: ignore[arg-type]
    return np.asarray(act(state, _key(seed, 1)))


@cache
def _compiled_act(agent: Any, num: int, explore: bool) -> Callable[[PyTree, Key], Array]:
    return jax.jit(lambda state, key: agent.act(state, _obs(num), key, explore=explore))


def own_temperature(agent: Agent, state: PyTree) -> float | None:
    """w of the law exp(w r) that a method means to follow; None where it has no such law."""
    match agent:
        case LQL() | NCLQL():
            return agent.inverse_temperature
        case QSM():
            return agent.reward_scale * agent.gradient_scale
        case SAC():
            return agent.reward_scale / float(jnp.exp(state.temperature.params))
        case SDAC():
            alpha = float(jnp.exp(state.temperature.params))
            return agent.reward_scale * agent.initial_alpha / alpha
    return None


def measure(actions: np.ndarray, w: float | None, bound: float) -> Row:
    """Shares, reward, and distances to the exact law: at w if there is one, and at the nearest."""
    shares, r = env.near_high_modes(actions).mean(axis=0), env.reward(actions)
    row: Row = dict(zip(MODES, shares, strict=True))
    row |= {"sum": shares.sum(), "reward_mean": r.mean(), "reward_std": r.std(), "w": w}
    row |= _distances("", actions, w, bound)
    laws = [_law(candidate, bound) for candidate in NEAREST]
    best = int(np.argmin([law.total_variation(actions) for law in laws]))
    return (
        row | {"nearest_w": NEAREST[best]} | _distances("nearest_", actions, NEAREST[best], bound)
    )


def _distances(prefix: str, actions: np.ndarray, w: float | None, bound: float) -> Row:
    if w is None:
        return {f"{prefix}total_variation": None, f"{prefix}wasserstein": None}
    law, quantiles = _law(w, bound), _quantiles(w, bound, len(actions))
    return {
        f"{prefix}total_variation": law.total_variation(actions),
        f"{prefix}wasserstein": env.sliced_wasserstein(actions, quantiles),
    }


@cache
def _law(w: float, bound: float) -> env.Law:
    return env.soft_policy(w, bound)


@cache
def _quantiles(w: float, bound: float, num: int) -> np.ndarray:
    return _law(w, bound).quantiles(num)


def trace(agent: Agent, state: PyTree, start: Array, key: Key) -> Array:
    """Every point of the chains that begin at `start` (B, 2): (steps + 1, B, 2)."""
    obs, bound = _obs(len(start)), agent.spec.act_bound
    match agent:
        case LQL() | NCLQL():
            value = partial(agent.critic.apply, state.critic.params, obs)
            path = draw(value, start.shape, agent.chain, key, start=start, trace=True)
        case QSM():
            score = partial(agent.score.apply, state.actor.params, obs)
            schedule = make_schedule(agent.schedule, agent.num_steps)
            path = reverse(score, schedule, start, key, bound, trace=True)
        case MFP():
            velocity = partial(agent.actor.velocity, state.actor.params, obs)
            path = integrate(velocity, start, agent.flow_steps, trace=True)
        case SAC():  # a single jump from the noise
            path = jnp.stack([start, agent.actor.place(state.actor.params, obs, start)[0]])
        case SDAC() | DPMD() | QVPO() | DACER() | DIPO():
            slow = isinstance(agent, SDAC | DPMD | QVPO)  # these act with the target copy
            params = state.actor.target_params if slow else state.actor.params
            noise = partial(agent.actor.network.apply, params, obs)
            schedule = agent.actor.schedule
            path = denoise(noise, schedule, start.shape, key, bound=bound, start=start, trace=True)
        case _:
            raise NotImplementedError(f"no way to follow the chains of {type(agent).__name__}")
    return jnp.clip(path, -bound, bound)


def _paths(agent: Agent, state: PyTree, config: BanditConfig) -> dict[str, np.ndarray]:
    """Chains from the starting law, and from a grid that covers the box."""
    follow = jax.jit(partial(trace, agent))
    axis = jnp.linspace(-config.bound, config.bound, 15)
    grid = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    start = jnp.clip(jax.random.normal(_key(0, 2), grid.shape), -config.bound, config.bound)
    paths = {"chains": start, "panels": grid}
    return {name: np.asarray(follow(state, x, _key(0, 3))) for name, x in paths.items()}


def _values(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], np.ndarray]:
    """Learned values against the exact ones, level by level; the first seed's maps (L, G, G)."""
    sigmas = [0.0]  # LQL has the clean level alone, at which the value is the reward
    if isinstance(agent, NCLQL):
        sigmas = _sigmas(agent)

    @jax.jit
    def learned(params: PyTree, points: Array) -> Array:
        apply = partial(agent.critic.apply, params, _obs(len(points)), points)
        return jnp.stack([apply(level).mean(axis=0) for level in range(len(sigmas))])

    inner, whole = _square(INNER), _square(config.bound)
    exact = jnp.stack([env.smoothed_value(inner, sigma, config.bound) for sigma in sigmas])
    rows = []
    for seed, state in _seeds(config, states):
        error = jnp.sqrt(((learned(state.critic.params, inner) - exact) ** 2).mean(axis=1))
        for level, (sigma, rmse) in enumerate(zip(sigmas, error, strict=True), start=1):
            row = {"method": name, "seed": seed, "level": level, "sigma": sigma}
            rows.append(row | {"rmse": float(rmse)})
    first = next(_seeds(config, states))[1]
    maps = np.asarray(learned(first.critic.params, whole))
    return rows, maps.reshape(len(sigmas), GRID, GRID)


def _sigmas(agent: NCLQL) -> list[float]:
    """What each level smooths by; the last is trained on the reward itself, so not at all."""
    return [float(sigma) for sigma in agent.sigmas[:-1]] + [0.0]


def _square(half: float) -> Array:
    """A grid of points (GRID * GRID, 2) over a square."""
    axis = jnp.linspace(-half, half, GRID)
    return jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def _sweep(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], np.ndarray, np.ndarray]:
    """Samples at every w of the sweep: measured, (W, n, 2), and some walks (W, steps + 1, n, 2).

    The critics do not depend on w, for without a future nothing is bootstrapped from samples.
    """

    def at(w: Array) -> LQL | NCLQL:
        return dataclasses.replace(agent, inverse_temperature=w)  # type: ignore[arg-type]

    act = jax.jit(lambda s, w, k: at(w).act(s, _obs(config.samples), k, explore=False))
    follow = jax.jit(lambda s, w, x, k: trace(at(w), s, x, k))
    start = jnp.clip(jax.random.normal(_key(0, 4), (WALKERS, 2)), -config.bound, config.bound)
    rows, swept, walks = [], [], []
    for w in config.sweep:
        for seed, state in _seeds(config, states):
            actions = np.asarray(act(state, w, _key(seed, 5)))
            row = {"method": name, "score": "direction", "seed": seed}
            rows.append(row | measure(actions, w, config.bound))
            if seed == config.seed:
                swept.append(actions[:1_500])
                walks.append(np.asarray(follow(state, w, start, _key(0, 6))))
    return rows, np.stack(swept), np.stack(walks)


def _raw_sweep(agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str) -> list[Row]:
    """The first seed's critic walked by its full gradient, in many small steps: Langevin proper."""
    num = 50 if config.quick else 500
    length = (
        {"steps_per_level": num // agent.num_levels}
        if isinstance(agent, NCLQL)
        else {"num_steps": num}
    )
    long = dataclasses.replace(agent, normalise=False, **length)  # type: ignore[arg-type]

    def at(w: Array) -> LQL | NCLQL:
        # A tenth of the step at which the walk round a mode of curvature w / WIDTH² would blow up.
        fields: dict[str, Any] = {"inverse_temperature": w, "step_size": 0.4 * env.WIDTH**2 / w}
        return dataclasses.replace(long, **fields)

    # As many as in the other sweep: a histogram's distance falls with the number of samples.
    obs = _obs(config.samples)
    act = jax.jit(lambda s, w, k: at(w).act(s, obs, k, explore=False))
    seed, state = next(_seeds(config, states))
    rows = []
    for w in config.sweep:
        if w <= RAW_LIMIT:
            actions = np.asarray(act(state, w, _key(seed, 7)))
            row = {"method": name, "score": "gradient", "seed": seed}
            rows.append(row | measure(actions, w, config.bound))
    return rows


def _search(config: BanditConfig) -> Iterator[Row]:
    """How NC-LQL's and LQL's chains fare on the exact values: the ground for their settings."""
    shape, bound = (min(config.samples, 4_000), 2), config.bound

    @jax.jit
    def annealed(high: Array, low: Array, w: Array, step_size: Array) -> Array:
        sigmas = geometric_sigmas(high, low, CHAIN_STEPS)  # type: ignore[arg-type]
        plan = annealed_plan(sigmas, 1, step_size)  # type: ignore[arg-type]
        seen = sigmas.at[-1].set(0.0)  # the clean level is the reward itself
        chain = Chain(plan, w, bound, "normal", True, True)  # type: ignore[arg-type]
        return draw(lambda a, i: env.smoothed_value(a, seen[i], bound), shape, chain, _key(0, 8))

    @jax.jit
    def plain(w: Array, step_size: Array) -> Array:
        plan = constant_plan(CHAIN_STEPS, step_size)  # type: ignore[arg-type]
        chain = Chain(plan, w, bound, "normal", True, True)  # type: ignore[arg-type]
        return draw(lambda a, _: env.reward(a), shape, chain, _key(0, 9))

    names = ("sigma_max", "sigma_min", "inverse_temperature", "step_size")
    grids = [SEARCH[name][:1] if config.quick else SEARCH[name] for name in names]
    for setting in product(*grids):
        found = _summary(np.asarray(annealed(*setting)))
        yield {"method": "nclql", **dict(zip(names, setting, strict=True)), **found}
    for setting in product(*grids[2:]):
        found = _summary(np.asarray(plain(*setting)))
        yield {"method": "lql", "sigma_max": None, "sigma_min": None,
               **dict(zip(names[2:], setting, strict=True)), **found}  # fmt: skip


def _summary(actions: np.ndarray) -> Row:
    shares = env.near_high_modes(actions).mean(axis=0)
    unequal = float(np.abs(shares - 0.25).max())
    return {"sum": shares.sum(), "unequal": unequal, "reward_mean": env.reward(actions).mean()}


def _gather(config: BanditConfig, found: dict[str, dict[str, list[Row]]]) -> dict[str, list[Row]]:
    """One table of each kind, in the order of the methods; the exact law joins the sweep."""
    order = [found[name] for name in config.methods]
    tables = {
        kind: [row for tables in order for row in tables.get(kind, [])]
        for kind in ("seeds", "smoothing", "sweep")
    }
    for w in config.sweep:
        law = _law(w, config.bound)
        actions = law.sample(config.samples, np.random.default_rng(config.seed))
        row = {"method": "exact", "score": "", "seed": config.seed}
        tables["sweep"].append(row | measure(actions, w, config.bound))
    tables["table"] = [_table_row(name, found[name]["seeds"]) for name in config.methods]
    return tables


def _table_row(name: str, rows: list[Row]) -> Row:
    """A method's means over seeds, how far seeds spread, and the paper's shares."""
    row: Row = {"method": METHODS[name].label, "seeds": len(rows)}
    for column in rows[0]:
        if column in ("method", "seed"):
            continue
        values = [r[column] for r in rows if r[column] is not None]
        row[column] = float(np.mean(values)) if values else None
        if column in ("sum", "reward_mean"):
            row[f"{column}_spread"] = float(np.std(values))
    paper = METHODS[name].paper
    for i, mode in enumerate(MODES):
        row[f"paper_{mode}"] = paper[i] if paper else None
    return row | {"paper_sum": round(sum(paper), 3) if paper else None}


def _write_settings(config: BanditConfig) -> None:
    """What was run, field by field, so that a reader need not trust the defaults of today."""
    runs = {name: dataclasses.asdict(run_settings(config, name)) for name in config.methods}
    asked = dataclasses.asdict(config) | {"out": str(config.out)}
    text = json.dumps({"study": asked, "runs": runs}, indent=1)
    (config.out / "settings.json").write_text(text + "\n")
    axis = np.linspace(-config.bound, config.bound, GRID)
    laws = np.stack([_law(w, config.bound).coarse(100) for w in config.sweep])
    arrays = {
        "bound": np.float32(config.bound),
        "centres": env.CENTRES,
        "high": np.array(list(env.HIGH_MODES.values())),
        "near": np.float32(env.NEAR),
        "axis": axis,
        "reward": env.reward_map(axis),
        "sweep": np.array(config.sweep),
        "laws": laws,
    }
    if "nclql" in config.methods:
        agent = run_settings(config, "nclql").make_agent(Spec(1, 2, config.bound))
        assert isinstance(agent, NCLQL)
        sigmas = _sigmas(agent)
        exact = [env.smoothed_value(_square(config.bound), s, config.bound) for s in sigmas]
        arrays |= {
            "sigmas": np.array(sigmas),
            "smoothed": np.stack(exact).reshape(len(sigmas), GRID, GRID),
        }
    packed = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
    np.savez_compressed(config.out / "data" / "exact.npz", **packed)  # type: ignore[arg-type]


def _write_csv(path: Path, rows: Iterable[Row]) -> None:
    rows = [
        {k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()}
        for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _print_table(rows: list[Row], console: Console) -> None:
    table = Table(title="Shares within 0.3 of the high modes; distances to exp(w r)/Z")
    for name in (
        "method",
        *MODES,
        "sum ± seeds",
        "paper",
        "reward ± std",
        "w",
        "TV",
        "W1",
        "near w",
    ):
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    for row in rows:
        table.add_row(
            row["method"],
            *(number(row[mode], 3) for mode in MODES),
            f"{row['sum']:.3f} ± {row['sum_spread']:.3f}",
            number(row["paper_sum"], 3),
            f"{row['reward_mean']:.3f} ± {row['reward_std']:.3f}",
            number(row["w"], 1),
            number(row["total_variation"], 3),
            number(row["wasserstein"], 3),
            f"{row['nearest_w']:.1f} ({row['nearest_total_variation']:.2f})",
        )
    wide = console if console.is_terminal else Console(width=130)  # a file has no edge to wrap at
    wide.print(table)
