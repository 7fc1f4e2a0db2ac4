"""Updates equal those of the released implementations: same weights, batches and random draws.

Float64, tiny networks.  The numbers in data/ came out of the released code (README.md beside this
file).  Here the agents' own `update` is fed the same draws and must end in the same weights.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.agents import dacer
from langevinrl.registry import METHODS
from langevinrl.types import Array, Batch, Spec

HERE = Path(__file__).parent / "data"
SPEC = Spec(obs_dim=3, act_dim=2)
# As released: the switches that the baseline code, not our default, has.
FIELDS: dict[str, dict[str, Any]] = {
    "nclql": {},
    "sac": {"squash_correction": False},
    "qsm": {"reward_scale": 1.0, "best_of": 4},
    "dipo": {"reward_scale": 1.0, "activation": "relu", "num_steps": 20},
    "sdac": {"best_of": 4, "temperature_delay": 4},
    "dpmd": {"best_of": 4, "temperature_delay": 4},
    "qvpo": {"best_of": 4, "repeat_critic_step": True},  # critics only: see `feed`
    "dacer": {"temperature_delay": 4, "num_entropy_actions": 5},
}  # fmt: skip
BASELINES = [name for name in FIELDS if name != "nclql"]


class Draws:
    """Hands out recorded random numbers in place of jax.random's, each law and shape in order."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, tuple[int, ...]], deque[np.ndarray]] = defaultdict(deque)

    def record(self, law: str, *draws: np.ndarray) -> None:
        for draw in draws:
            self.waiting[law, draw.shape].append(draw)

    def take(self, law: str, key: Any, shape: tuple[int, ...], *_: Any, **__: Any) -> Array:
        queue = self.waiting[law, tuple(shape)]
        assert queue, f"no {law} draw of shape {shape} is left"
        return jnp.asarray(queue.popleft())

    def all_taken(self) -> bool:
        return not any(self.waiting.values())


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Draws]:
    """Float64 and recorded draws; without jit, each step of a scanned chain takes its own."""
    recorded = Draws()
    for law in ("normal", "uniform", "randint"):
        monkeypatch.setattr(jax.random, law, partial(recorded.take, law))
    monkeypatch.setattr(dacer, "mean_entropy", lambda *_: jnp.asarray(1.5))  # as it was recorded
    with jax.enable_x64(True), jax.disable_jit():
        yield recorded


def load(name: str) -> dict[str, np.ndarray]:
    with np.load(HERE / f"{name}.npz", allow_pickle=False) as table:
        return dict(table)


def batch_of(table: dict[str, np.ndarray], k: int, **extra: Array) -> Batch:
    obs, action, reward, done, next_obs = (
        table[f"in/{name}"][k] for name in ("obs", "action", "reward", "done", "next_obs")
    )
    parts = (jnp.asarray(part) for part in (obs, action, reward, 1.0 - done, next_obs))
    return Batch(*parts, jnp.arange(len(obs)), dict(extra))


def network(template: Any, layers: list[dict[str, np.ndarray]]) -> Any:
    """Released layers, embedding first, in the shape of one of our networks."""

    def perceptron(shape: Any, layers: list[dict[str, np.ndarray]]) -> Any:
        edges = np.cumsum([weight.shape[-2] for weight in shape["inputs"]])[:-1]
        split = [jnp.asarray(part) for part in np.split(layers[0]["weight"], edges)]
        rest = [{k: jnp.asarray(v) for k, v in layer.items()} for layer in layers]
        rest[0].pop("weight")
        return {"inputs": split, "layers": rest}

    if "body" not in template:
        return perceptron(template, layers)
    size = len(template["body"]["layers"])
    body, embedding = layers[-size:], layers[:-size]
    shape = template["embedding"]
    told = perceptron(shape, embedding) if shape else {}
    return {"body": perceptron(template["body"], body), "embedding": told}


def baseline_layers(table: dict[str, np.ndarray], place: str) -> list[dict[str, np.ndarray]]:
    count = sum(name.startswith(f"out/{place}|") and name.endswith("|w") for name in table)
    names = [f"linear_{i}" if i else "linear" for i in range(count)]
    letters = {"weight": "w", "bias": "b"}
    return [{k: table[f"out/{place}|{n}|{c}"] for k, c in letters.items()} for n in names]


def nclql_layers(table: dict[str, np.ndarray], place: str) -> list[dict[str, np.ndarray]]:
    paths = [f"embedding/{i}" for i in range(2)] + [f"body/{i}" for i in range(4)]
    return [{k: table[f"out/{place}/{p}/{k}"] for k in ("weight", "bias")} for p in paths]


def critics(template: Any, pair: list[list[dict[str, np.ndarray]]]) -> Any:
    one = jax.tree.map(lambda leaf: leaf[0], template)
    return jax.tree.map(lambda *members: jnp.stack(members), *(network(one, q) for q in pair))


def assert_equal(ours: Any, released: Any, tolerance: float = 1e-12) -> None:
    close = partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)
    jax.tree.map(close, ours, released)


def begin(name: str, table: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """The agent and its state with the released first weights."""
    agent = METHODS[name].load()(SPEC, hidden=(16, 16, 16), **FIELDS[name])
    with pytest.MonkeyPatch.context() as patch:  # the first weights are drawn, then replaced
        patch.setattr(jax.random, "truncated_normal", lambda key, low, high, shape: jnp.ones(shape))
        state = agent.init(jax.random.key(0))
    if name == "nclql":
        pair = [nclql_layers(table, f"0/{q}") for q in ("q1", "q2")]
        params = critics(state.critic.params, pair)
        return agent, type(state)(state.critic._replace(params=params, target_params=params))
    table = _with_first_targets(table)
    params, target_params = (
        critics(state.critic.params, [baseline_layers(table, f"0.{p}{q}") for q in ("q1", "q2")])
        for p in ("", "target_")
    )
    state = state._replace(critic=state.critic._replace(params=params, target_params=target_params))
    policy = "q_score" if name == "qsm" else "policy"
    actor = network(state.actor.params, baseline_layers(table, f"0.{policy}"))
    slow = network(state.actor.params, baseline_layers(table, f"0.target_{policy}"))
    state = state._replace(actor=state.actor._replace(params=actor, target_params=slow))
    if hasattr(state, "temperature"):  # kept in float32 there
        log_alpha = jnp.asarray(table["out/0.log_alpha"])
        state = state._replace(temperature=state.temperature._replace(params=log_alpha))
    if name == "dpmd":  # where its running statistics stood
        state = state._replace(mean_q=jnp.asarray(1.3), std_q=jnp.asarray(0.7))
    return agent, state


def _with_first_targets(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The table with the first target copies; those that equal the weights were left out of it."""
    first = {name: array for name, array in table.items() if name.startswith("out/0.")}
    equal = {name.replace("out/0.", "out/0.target_"): array for name, array in first.items()}
    apart = {name.replace("poicy", "policy"): a for name, a in first.items() if "target" in name}
    return table | equal | apart


def feed(draws: Draws, name: str, table: dict[str, np.ndarray], k: int) -> None:
    """What one update of a baseline draws, in its order."""
    due = k % 2 == 0

    def chain(purpose: int, num: int) -> None:
        draws.record("normal", table["in/start"][k, purpose, :num])
        draws.record("normal", *np.moveaxis(table["in/chain"][k, purpose, :num], 1, 0))

    def noise(*names: str, purpose: int | None = None) -> None:
        rows = [table[f"in/{n}"][k] for n in names]
        draws.record("normal", *(row if purpose is None else row[purpose] for row in rows))

    if name == "sac":
        draws.record("normal", table["in/eps"][k, 0][None], table["in/eps"][k, 1])
        return
    chain(0, 1 if name in ("dipo", "dacer") else 4)
    if name in ("qsm", "sdac", "dpmd", "dacer"):
        noise("jit", purpose=0)
    if name == "dacer":
        noise("z")
        if due:
            chain(1, 1)
            draws.record("normal", table["in/jit"][k, 1][None])
        if k == 0:  # its entropy is given, so that these have no say
            draws.record("normal", *np.zeros((22, 5, 8, 2)))
    if name == "sdac" and due:
        chain(1, 4)
        noise("jit", purpose=1)
        noise("rev")
    if name == "dipo" or (name in ("sdac", "dpmd") and due):
        draws.record("randint", table["in/t"][k])
        noise("fwd")
    if name == "qvpo" and due:  # how its policy's states were shuffled is not in the table
        draws.record("normal", *np.zeros((21, 4, 8, 2)))
        draws.record("uniform", np.zeros((10, 8, 2)))
        draws.record("randint", np.zeros((11, 8), int))
        draws.record("normal", np.zeros((11, 8, 2)))


@pytest.mark.parametrize("name", BASELINES)
def test_updates_equal_the_released_baselines(name: str, draws: Draws) -> None:
    table = load(name)
    agent, state = begin(name, table)
    last = len(table["in/obs"])
    for k in range(last):
        extra = {"improved": jnp.asarray(table["in/improved"][k])} if name == "dipo" else {}
        feed(draws, name, table, k)
        new = agent.update(state, batch_of(table, k, **extra), jax.random.key(k))
        assert draws.all_taken()
        state, metrics = new.state, new.metrics
        info = f"out/{k + 1}.info."
        losses = table[f"{info}q1_loss"] + table[f"{info}q2_loss"]
        if name not in ("qvpo", "dpmd"):  # these step twice, and report the loss of the first
            own = metrics.get("critic/bellman", metrics.get("critic/likelihood"))
            assert_equal(own, losses)
        if name == "dipo":
            assert_equal(new.rewrite["improved"], table[f"out/{k + 1}.imp"])
        if name == "qvpo":  # its policy from the table, so that the next critics' targets are known
            released = network(state.actor.params, baseline_layers(table, "1.policy"))
            state = state._replace(actor=state.actor._replace(params=released))
    assert_ends_as_released(name, state, table, last)


def assert_ends_as_released(name: str, state: Any, table: dict[str, np.ndarray], last: int) -> None:
    for prefix, ours in (("", state.critic.params), ("target_", state.critic.target_params)):
        pair = [baseline_layers(table, f"{last}.{prefix}{q}") for q in ("q1", "q2")]
        assert_equal(ours, critics(ours, pair))
    if name == "qvpo":
        return
    policy = "q_score" if name == "qsm" else "policy"
    assert_equal(
        state.actor.params,
        network(state.actor.params, baseline_layers(table, f"{last}.{policy}")),
    )
    slow = {"dipo": "target_policy", "sdac": "target_poicy", "dpmd": "target_poicy"}.get(name)
    if slow:
        released = network(state.actor.params, baseline_layers(table, f"{last}.{slow}"))
        assert_equal(state.actor.target_params, released)
    if hasattr(state, "temperature"):
        assert_equal(state.temperature.params, table[f"out/{last}.log_alpha"])
