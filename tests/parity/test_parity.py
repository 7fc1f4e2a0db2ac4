"""Updates compared with released implementations: same weights, batches and draws, in float64.

The README in this folder describes the files in `data` and how they were made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.agents import dacer
from langevinrl.agents.dipo import DIPO
from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.qsm import QSM
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sac import SAC
from langevinrl.agents.sdac import SDAC
from langevinrl.learner import Learner
from langevinrl.samplers.noise import ChainNoise
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update

DATA = Path(__file__).parent / "data"
assert_close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14)

Table: TypeAlias = dict[str, np.ndarray]
Draws: TypeAlias = dict[str, list[np.ndarray]]  # by distribution, in the order of the calls

SIZES: dict[str, Any] = {"spec": Spec(3, 2), "hidden": (16, 16, 16)}
FEW: dict[str, Any] = SIZES | {"best_of": 4, "temperature_delay": 4}
AGENTS: dict[str, Any] = {
    "nclql": NCLQL(**SIZES),
    "sac": SAC(**SIZES, squash_correction=False),
    "qsm": QSM(**SIZES, reward_scale=1.0, best_of=4),
    "dipo": DIPO(**SIZES, reward_scale=1.0, activation="relu", num_steps=20),
    "sdac": SDAC(**FEW),
    "dpmd": DPMD(**FEW),
    "qvpo": QVPO(  # with all three bugs of the released code
        **SIZES, best_of=4, weight_gradient=True, repeat_critic_step=True, shuffle="elements"
    ),
    "dacer": dacer.DACER(**SIZES, temperature_delay=4, num_entropy_actions=1),
}
# Compared after every update: a column of the file, and our value.
COMPARED: dict[str, Callable[[Update], Array]] = {
    "critic_loss": lambda update: update.state.critic.loss,
    "td_loss": lambda update: update.metrics["critic/bellman"],
    "smoothing_loss": lambda update: update.metrics["critic/smoothing"],
    "policy_loss": lambda update: update.state.actor.loss,
    "entropy": lambda update: update.metrics["policy/entropy"],
    "log_alpha": lambda update: update.state.temperature.params,
    "entropy_weight": lambda update: update.metrics["policy/entropy_weight"],
    "q_weights_mean": lambda update: update.metrics["policy/weight"],
    "running_q_mean": lambda update: update.state.mean_q,
    "running_q_std": lambda update: update.state.std_q,
    "mean_q_std": lambda update: update.state.spread,
    "improved": lambda update: (update.rewrite or {})["improved"],
}


class Player:
    """Replaces the draws of jax.random by recorded ones, in the order of the calls.

    An update is compiled, so it calls jax.random only while it is traced. A chain draws the noise
    of all its steps by one mapped call: `split` returns the numbers of the steps in place of keys,
    and each number selects a step of the recorded array.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: dict[str, deque[Array]] = {}
        for name in ("normal", "uniform", "randint"):
            monkeypatch.setattr(jax.random, name, partial(self.play, name))
        monkeypatch.setattr(jax.random, "split", lambda key, num=2: jnp.arange(num))
        # The released code was recorded with sorted elements in place of a shuffle.
        monkeypatch.setattr(jax.random, "permutation", lambda key, x: jnp.sort(x))

    def play(self, name: str, key: Key, shape: tuple[int, ...], *_: Any, **bounds: float) -> Array:
        draw = self.waiting[name].popleft()
        draw = draw[key] if draw.ndim > len(shape) else draw
        assert draw.shape == shape
        return draw

    def compiled(self, call: Callable[..., PyTree]) -> Callable[..., PyTree]:
        """Return `call` as a compiled function of draws, which must all be used, and arguments."""

        @jax.jit
        def traced(draws: Draws, *args: PyTree) -> PyTree:
            self.waiting = {name: deque(arrays) for name, arrays in draws.items()}
            result = call(*args)
            assert not any(self.waiting.values())
            return result

        return lambda *args: jax.tree.map(np.asarray, traced(*args))


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """Use float64 in these tests only."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    yield
    jax.config.update("jax_enable_x64", False)  # type: ignore[no-untyped-call]


def read(name: str) -> Table:
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


def chain(table: Table, purpose: int, num: int) -> list[np.ndarray]:
    """Return start and step noise of N chains: for the next action (0) or the policy loss (1)."""
    return [table["start"][purpose, :num], table["chain"][purpose, :num].swapaxes(0, 1)]


def drawn(name: str, table: Table) -> Draws:
    """Return the draws of one update in the order its agent makes them."""
    if name == "nclql":
        normal = [table["chain"][:, None], table["pert"]]
        return {"normal": normal, "uniform": [table["start"][None]], "randint": [table["level"]]}
    to_next = chain(table, 0, 1 if name in ("dipo", "dacer") else 4)
    if name == "sac":
        return {"normal": [table["eps"][:1], table["eps"][1]]}
    if name == "qsm":  # the last one is multiplied by zero
        return {"normal": [*to_next, table["jit"][0]]}
    if name == "dipo":
        return {"normal": [*to_next, table["fwd"]], "randint": [table["t"]]}
    if name == "qvpo":
        normal = [*to_next, *chain(table, 1, 4), table["fwdq"]]
        return {"normal": normal, "uniform": [table["uni"]], "randint": [table["tq"]]}
    normal = [*to_next, table["jit"][0]]
    if name == "dacer":  # the policy's draws are used twice: the entropy estimate is replaced
        own = [*chain(table, 1, 1), table["jit"][1:]]
        return {"normal": [*normal, table["z"], *own, *own]}
    if name == "sdac":
        own = [*chain(table, 1, 4), table["jit"][1], table["fwd"], table["rev"]]
        return {"normal": [*normal, *own], "randint": [table["t"]]}
    return {"normal": [*normal, table["fwd"]], "randint": [table["t"]]}  # dpmd


def make_batch(name: str, table: Table) -> Batch:
    extra = {"improved": table["improved"]} if name == "dipo" else {}
    transition = (table["obs"], table["action"], table["reward"], 1.0 - table["done"])
    return Batch(*transition, table["next_obs"], np.arange(len(table["obs"])), extra)


def weights(template: PyTree, numbers: np.ndarray) -> PyTree:
    """Return recorded numbers as weights of a network or of two, or as a temperature."""
    if numbers.ndim == 0:
        return numbers
    if numbers.ndim == 2:
        one = jax.tree.map(lambda leaf: leaf[0], template)
        return jax.tree.map(lambda *leaves: np.stack(leaves), *(weights(one, n) for n in numbers))
    stream = iter(numbers)

    def take(leaf: Array) -> np.ndarray:
        return np.fromiter(stream, float, leaf.size).reshape(leaf.shape)

    def perceptron(mlp: PyTree) -> PyTree:
        inputs, layers = [take(weight) for weight in mlp["inputs"]], []
        for layer in mlp["layers"]:
            layers.append({name: take(layer[name]) for name in ("weight", "bias") if name in layer})
        return {"inputs": inputs, "layers": layers}

    if "body" in template:
        parts = [(name, template[name]) for name in ("embedding", "body")]
        result = {name: perceptron(part) if part else part for name, part in parts}
    else:
        result = perceptron(template)
    assert next(stream, None) is None
    return result


def begin(agent: Any, data: Table) -> Any:
    """Return the agent's state with the recorded first weights."""
    state = agent.init(jax.random.key(0))
    if "updates" in state._fields:
        state = state._replace(updates=np.zeros((), int))  # int64: QVPO computes ω from it
    for (name, *field), numbers in recorded(data, "start"):
        old = getattr(state, name)
        new: Any = numbers
        if isinstance(old, Learner):  # the target copy starts equal unless recorded
            fields = ["params", "target_params"] if field == ["params"] else field
            new = old._replace(**dict.fromkeys(fields, weights(old.params, numbers)))
        state = state._replace(**{name: new})
    # NumPy scalars are not weakly typed, so an update compiles once.
    return jax.tree.map(np.asarray, state)


def recorded(data: Table, when: str) -> list[tuple[list[str], np.ndarray]]:
    """Return the recorded numbers of the state at the start or the end, with their paths."""
    paths = [(key.split("/"), numbers) for key, numbers in data.items()]
    return [(path[1:], numbers) for path, numbers in paths if path[0] == when]


def play_updates(name: str, data: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Update]:
    agent = AGENTS[name]
    inputs = read("nclql_inputs" if name == "nclql" else "baseline_inputs")
    state, key = begin(agent, data), jax.random.key(0)
    update = Player(monkeypatch).compiled(lambda state, batch: agent.update(state, batch, key))
    for k in range(len(inputs["obs"])):
        table = {column: rows[k] for column, rows in inputs.items()}
        done = update(drawn(name, table), state, make_batch(name, table))
        state = done.state
        yield done


@pytest.mark.parametrize("name", AGENTS)
def test_updates_equal_the_released_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dacer, "mean_entropy", lambda *_: jnp.asarray(1.5))
    data, delay = read(name), getattr(AGENTS[name], "delay", 1)
    updates = list(play_updates(name, data, monkeypatch))
    for column in (key for key in data if "/" not in key):
        # Between its steps our policy keeps its last loss; the released code computes a new one.
        rows = slice(None, None, delay if column == "policy_loss" else 1)
        assert_close([COMPARED[column](update) for update in updates[rows]], data[column][rows])
    for (learner, field), numbers in recorded(data, "end"):
        ours = getattr(getattr(updates[-1].state, learner), field)
        jax.tree.map(assert_close, ours, weights(ours, numbers))


def test_actions_of_nclql_equal_the_released_code(monkeypatch: pytest.MonkeyPatch) -> None:
    data, agent = read("nclql"), AGENTS["nclql"]
    updates = list(play_updates("nclql", data, monkeypatch))
    steps = np.moveaxis(data["act/chain"], 0, 1)  # (B, T, A)
    noise = ChainNoise(data["act/start"][:, None], steps[:, :, None])
    policy = jax.jit(partial(agent.policy, explore=True))
    for k, actions in zip((0, 1, 4), data["act/actions"], strict=True):
        assert_close(policy(updates[k].state, data["act/obs"], noise), actions)
