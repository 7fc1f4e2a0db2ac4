"""Small agents of every method, and their evaluation policies as exports trace them."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.envs.spaces import TaskSpaces
from langevinrl.export.trace import TracedPolicy, trace_policy
from langevinrl.registry import METHODS

LOW, HIGH = np.float32([[0.0, -2.0, -8.0]]), np.float32([[2.0, 2.0, 4.0]])
OBSERVATIONS = gym.spaces.Box(-np.inf, np.inf, (5,))
SPACES = TaskSpaces(OBSERVATIONS, gym.spaces.Box(LOW, HIGH), bound=2.0)
ROWS = 7
PAGES = Path(__file__).parents[2] / "docs"
# Every method and the agent of docs/adding-an-agent.md.
CASES: dict[str, dict[str, Any]] = {
    "nclql": {"best_of": 3, "num_levels": 3, "inverse_temperature": 10.0, "normalise": False},
    "nclql-auto": {"best_of": 3, "calm_updates": 2},  # in the middle of its calm start
    "lql": {"num_steps": 4, "best_of": 3},
    "sac": {},
    "qsm": {"num_steps": 4, "best_of": 3},
    "dipo": {"num_steps": 4},
    "qvpo": {"num_steps": 4, "best_of": 3},
    "dacer": {"num_steps": 4, "best_of": 3},
    "mfp": {"flow_steps": 3, "best_of": 3},
    "sdac": {"num_steps": 4, "best_of": 3},
    "dpmd": {"num_steps": 4, "best_of": 3},
    "shooting": {"best_of": 3},
}


def code_blocks(page: str) -> list[str]:
    """Return the Python code of a page of the documentation."""
    return re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), flags=re.DOTALL)


def documented_agent(folder: Path) -> Any:
    """Return the class of docs/adding-an-agent.md, imported from a file."""
    path = folder / "shooting.py"
    path.write_text(code_blocks("adding-an-agent.md")[0])
    spec = importlib.util.spec_from_file_location("shooting", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["shooting"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Shooting


def make_agent(kind: Any, **fields: Any) -> tuple[Any, Any]:
    """Return an agent and a state after one update in which all weights differ."""
    agent = kind(SPACES.spec, hidden=(16, 12), **fields)
    rng = np.random.default_rng(0)

    def perturb(leaf: Any) -> Any:
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf + 0.1 * rng.normal(size=leaf.shape).astype(np.float32) if is_float else leaf + 1

    return agent, jax.tree.map(perturb, jax.jit(agent.init)(jax.random.key(0)))


@cache
def make(case: str, folder: Path) -> tuple[Any, Any, TracedPolicy]:
    """Return a case's agent, state and traced policy."""
    kind = METHODS[case].load() if case in METHODS else documented_agent(folder)
    agent, state = make_agent(kind, **CASES[case])
    return agent, state, trace_policy(agent, state, SPACES)


@cache
def expected(case: str, folder: Path) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Return observations, noise by the names of exported files, and the agent's actions."""
    agent, state, traced = make(case, folder)
    obs = np.random.default_rng(1).normal(size=(ROWS, 5)).astype(np.float32)
    drawn = agent.noise(jax.random.key(2), ROWS)
    action = jax.jit(lambda *x: agent.policy(state, *x, explore=False))(obs, drawn)
    leaves = {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree_util.tree_flatten_with_path(drawn)[0]
    }
    noise = {}
    for name in traced.noise:
        kind, _, place = name.partition(".")
        # Agents may draw uniform noise from their action box, files draw it from [-1, 1].
        is_wide = kind == "uniform" and np.abs(leaves[place]).max() > 1
        noise[name] = np.asarray(leaves[place]) / (SPACES.bound if is_wide else 1)
    clipped = np.clip(np.asarray(action), -SPACES.bound, SPACES.bound)
    return obs, noise, SPACES.stretch(clipped)


def policy_of(function: Callable[..., Any]) -> TracedPolicy:
    """Return a policy that is a function of an observation (5,), without noise."""
    box = gym.spaces.Box(-10.0, 10.0, jax.eval_shape(function, jnp.zeros(5)).shape)
    return TracedPolicy("Function", TaskSpaces(OBSERVATIONS, box), {}, function)
