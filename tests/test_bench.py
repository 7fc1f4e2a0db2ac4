"""The straightforward version beside each update: the same numbers, by more work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl import bench
from langevinrl.agents import REGISTER
from langevinrl.errors import UserError
from langevinrl.types import Spec, Update

SMALL = {
    "hidden": (8, 8), "best_of": 3, "num_steps": 3, "num_levels": 3, "flow_steps": 2,
    "num_noises": 4, "num_ascent_steps": 2, "num_entropy_actions": 12, "num_gaussians": 1,
}  # fmt: skip


def make(name: str) -> Any:
    fields = REGISTER[name].__dataclass_fields__
    return REGISTER[name](Spec(3, 2), **{k: v for k, v in SMALL.items() if k in fields})


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BATCH", 6)
    monkeypatch.setattr(bench.choose, "BLOCK_ROWS", 12)  # three candidates make two blocks


def flops(lowered: Any) -> float:
    return float(lowered.cost_analysis()["flops"])


@pytest.mark.parametrize("name", REGISTER)
def test_straightforward_is_the_same_update(name: str) -> None:
    agent = make(name)
    batch, key = bench.draw_batch(agent), jax.random.key(1)
    state = jax.jit(agent.init)(jax.random.key(0))
    if hasattr(state, "updates"):  # an update on which no policy is due
        state = state._replace(updates=jnp.ones((), jnp.int32))

    def compiled() -> tuple[Update, float]:
        lowered = jax.jit(lambda *args: agent.update(*args)).lower(state, batch, key)
        return lowered.compile()(state, batch, key), flops(lowered)

    ours, work = compiled()
    with bench.straightforward():
        plain, more_work = compiled()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), ours, plain)
    assert work != more_work  # it was another program


def test_one_agent_may_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SIZES", {"tiny": Spec(3, 2)})
    monkeypatch.setattr(bench, "ENVS", 2)
    small = make("sac")
    monkeypatch.setitem(bench.REGISTER, "sac", lambda _: small)
    bench.measure(bench.Bench(("sac",), tmp_path, repeats=1))
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert row["agent"] == "sac" and row["sizes"] == "tiny"
    assert row["ratio"] == pytest.approx(row["update"] / row["plain update"])
    assert min(row[name] for name in ("update", "plain update", "act", "peak MB")) > 0


def test_an_unknown_agent_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean sac"):
        bench.measure(bench.Bench(("sacc",)))
