"""The plain versions: the agents' own numbers, by an ordinary network and all the work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import langevinrl.bench.plain
from langevinrl.bench.agents import draw_batch
from langevinrl.bench.plain import PLAIN
from langevinrl.learner import Learner
from langevinrl.registry import METHODS
from langevinrl.samplers import choose
from langevinrl.types import Batch, Spec

ROWS = 8
SPEC = Spec(5, 2, act_bound=1.5)
SMALL: dict[str, Any] = {
    "hidden": (16, 16), "best_of": 3, "num_steps": 4, "num_levels": 3, "flow_steps": 3,
    "num_noises": 4, "num_ascent_steps": 2, "num_entropy_actions": 12, "num_gaussians": 1,
    # Long steps, and chains that do not all end in one corner: so it shows which weights are used.
    "learning_rate": 0.01, "critic_learning_rate": 0.01, "actor_learning_rate": 0.01,
    "inverse_temperature": 10.0,
}  # fmt: skip
AGENTS = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PLAIN]
FILES = sorted(Path(langevinrl.bench.plain.__file__).parent.glob("*.py"))


@cache
def make(name: str) -> Any:
    kind = METHODS[name].load()
    fields = kind.__dataclass_fields__
    return kind(SPEC, **{k: v for k, v in SMALL.items() if k in fields})


def batch_for(agent: Any) -> Batch:
    batch = draw_batch(agent, ROWS)
    extra = {column: 0.5 * value for column, value in batch.extra.items()}
    return batch._replace(bootstrap=jnp.arange(ROWS, dtype=jnp.float32) % 3 / 2, extra=extra)


@cache
def start(name: str) -> Any:
    """A state in which no two things are equal that a wrong version might exchange.

    Target copies are of other weights, temperatures are not the first ones, and values are about
    1.5, since QVPO learns nothing from actions worth less than 1.
    """
    state, other = (jax.jit(make(name).init)(jax.random.key(seed)) for seed in (0, 1))
    learners = {}
    for part, learner in state._asdict().items():
        if isinstance(learner, Learner):
            learners[part] = learner._replace(target_params=getattr(other, part).params)
    for params in (learners["critic"].params, learners["critic"].target_params):
        params["body"]["layers"][-1]["bias"] += 1.5
    if "temperature" in learners:
        learners["temperature"] = learners["temperature"]._replace(params=jnp.asarray(0.4))
    return state._replace(**learners)


@cache
def traced(name: str, version: str, method: str) -> Any:
    """The `update` or `act` of an agent, its own or the plain one, before it is compiled."""
    agent, state, batch = make(name), start(name), batch_for(make(name))
    own = {"update": agent.update, "act": partial(agent.act, explore=True)}
    function = own[method] if version == "own" else partial(getattr(PLAIN[name], method), agent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "BLOCK_ROWS", 2 * ROWS)  # so that three candidates make two blocks
        data = batch if method == "update" else batch.obs
        return jax.jit(function).trace(state, data, jax.random.key(0))


@cache
def compiled(name: str, version: str, method: str) -> Any:
    return traced(name, version, method).lower().compile()


def assert_close(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5), a, b)


@pytest.mark.parametrize("name", AGENTS)
def test_the_numbers_are_the_agents_own(name: str) -> None:
    own, plain = (compiled(name, version, "update") for version in ("own", "plain"))
    states, batch = [start(name)], batch_for(make(name))
    for key in jax.random.split(jax.random.key(1), 2):  # a delayed step is due, then it is not
        update = own(states[-1], batch, key)
        assert_close(update, plain(states[-1], batch, key))
        states.append(update.state)
    for before, after in zip(states[0], states[1], strict=True):
        if isinstance(before, Learner):  # and every one of them learned
            moved = jax.tree.map(lambda x, y: bool((x != y).any()), before.params, after.params)
            assert all(jax.tree.leaves(moved))
    args = (states[-1], batch.obs, jax.random.key(2))
    assert_close(compiled(name, "own", "act")(*args), compiled(name, "plain", "act")(*args))


def equations(jaxpr: Any) -> Iterator[Any]:
    """All of a program, what is called in it included."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def sums_over(program: list[Any]) -> set[int]:
    """How many terms the sums inside its matrix products have."""
    found = set()
    for equation in program:
        if equation.primitive.name == "dot_general":
            (axes, _), _ = equation.params["dimension_numbers"]
            found.add(int(np.prod([equation.invars[0].aval.shape[axis] for axis in axes])))
    return found


def conditions(program: list[Any]) -> list[Any]:
    return [equation for equation in program if equation.primitive.name == "cond"]


def own_derivatives(program: list[Any]) -> set[str]:
    """Names of functions that bring their derivative along."""
    calls = [e for e in program if e.primitive.name == "custom_jvp_call"]
    return {call.params["call_jaxpr"].jaxpr.debug_info.func_name for call in calls}


@pytest.mark.parametrize("name", AGENTS)
def test_plain_is_plain_and_the_agents_own_is_not(name: str) -> None:
    programs = [list(equations(traced(name, v, "update").jaxpr)) for v in ("own", "plain")]
    own, plain = programs
    state, agent = start(name), make(name)
    networks = [learner.params for learner in state if isinstance(learner, Learner)]
    blocks = [p.get("body", p)["inputs"] for p in networks if isinstance(p, dict)]
    whole = {sum(b.shape[-2] for b in inputs) for inputs in blocks if len(inputs) > 1}

    assert whole <= sums_over(plain)  # inputs side by side
    assert not whole & sums_over(own)
    if name != "sac":  # whose policy sees the observation alone
        assert SPEC.obs_dim not in sums_over(plain)
    assert not own_derivatives(plain) & {"mish", "gelu"}
    assert agent.activation in own_derivatives(own)
    # Nothing is skipped but DACER's entropy; a learner would be several arrays.
    assert bool(conditions(plain)) == (name == "dacer")
    assert all(len(condition.outvars) == 1 for condition in conditions(plain))
    if hasattr(state, "updates"):
        assert any(len(condition.outvars) > 1 for condition in conditions(own))


def test_the_ten_methods_have_a_plain_version() -> None:
    assert PLAIN.keys() <= METHODS.keys() and len(PLAIN) == 10


ALLOWED = {
    "langevinrl.types": {"Array", "Batch", "Key", "PyTree", "Spec", "Update"},
    "langevinrl.learner": {"Learner"},
    "langevinrl.mixture": {"mean_entropy"},
    "langevinrl.samplers.diffusion": {"Schedule", "make_schedule"},
    "langevinrl.samplers.langevin": {"Plan", "annealed_plan", "constant_plan", "geometric_sigmas"},
    "langevinrl.agents": set(METHODS),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plain_versions_are_built_from_nothing_of_the_agents(path: Path) -> None:
    fields = {field for m in METHODS.values() for field in m.load().__dataclass_fields__}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langevinrl"):
            module, names = node.module or "", {alias.name for alias in node.names}
            if module.startswith("langevinrl.agents."):
                assert all(name == "State" or name.isupper() for name in names), module
            elif not module.startswith("langevinrl.bench.plain"):
                assert names <= ALLOWED[module], module
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("langevinrl") for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            assert owner != "agent" or name in fields, name  # hyperparameters, no methods
            if owner in METHODS:
                assert name == "State" or name.isupper(), name
