"""NaN and infinity stop a run at the update that made them; earlier checkpoints stay valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest

from langevinrl.errors import UserError
from langevinrl.runs import train
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finite import (
    BadNumberError,
    LastUpdate,
    require_finite_actions,
    require_finite_state,
    require_finite_update,
)
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage.checkpoint import load
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Batch


def config(folder: Path, **changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "agent": "lql", "hyperparameters": {"hidden": (4, 4), "num_steps": 2}, "iterations": 20,
        "warmup": 40, "batch_size": 16, "num_envs": 2, "capacity": 100, "eval_every": 20,
        "eval_episodes": 1, "checkpoint_every": 4, "log_every": 20, "seeds": 2, "seed": 7,
    }  # fmt: skip
    return RunConfig("probe", out=str(folder), **(fields | changes))


class Generous(probes.Probe):
    """Returns rewards whose square overflows, after `late` steps."""

    steps = 0
    late = 0

    def step(self, action: Any) -> Any:
        Generous.steps += 1
        reward = 9e19 if Generous.steps > Generous.late else 1.0
        return self.seen(), reward, True, False, {}


def test_a_loss_that_is_not_finite_stops_the_run_with_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generous, "steps", 0)
    monkeypatch.setattr(Generous, "late", 4 * (20 + 6))
    with pytest.raises(UserError, match=r"of seed [78] became (inf|nan) at iteration") as caught:
        train.train(config(tmp_path / "run"), env=Generous, quiet=True)
    folder = RunFolder(tmp_path / "run")
    report = json.loads(folder.bad_numbers.read_text())
    assert f"iteration {report['iteration']}" in str(caught.value)
    assert report["batch"]["reward"]["max"] == pytest.approx(9e19)
    assert report["batch"]["obs"]["shape"][0] == 16
    assert "rewards or observations" in str(caught.value)
    assert load(folder).metadata["iteration"] == 4
    assert "The checkpoint of iteration 4 is kept" in str(caught.value)


class Odd(probes.Probe):
    """Returns one bad number, late, in the environment number `wrong`."""

    built = 0
    reward, seen_first = 1.0, 0.0

    def __init__(self) -> None:
        super().__init__()
        self.number, self.steps = Odd.built, 0
        Odd.built += 1

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, reward = np.array(self.seen()), 1.0
        if self.number == Odd.wrong and self.steps == 27:
            reward = Odd.reward
            obs[0] += Odd.seen_first
        return obs, reward, False, self.steps % 5 == 0, {}

    wrong = -1


@pytest.mark.parametrize(
    ("reward", "seen", "message"),
    [
        (-np.inf, 0.0, "gave a reward of -inf"),
        (1.0, 1e30, r"gave an observation whose number 0 is 1.*e\+30"),
    ],
)
def test_bad_numbers_from_an_environment_never_enter_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reward: float, seen: float, message: str
) -> None:
    for name, value in {"reward": reward, "seen_first": seen, "built": 0, "wrong": -1}.items():
        monkeypatch.setattr(Odd, name, value)
    plan = config(tmp_path / "run").resolved()
    with Run(plan, env=Odd) as run:
        first = Odd.built - 4  # earlier ones were built to check the task
        monkeypatch.setattr(Odd, "wrong", first + 3)
        with pytest.raises(UserError, match=rf"environment 1 of seed 8 {message}; expected finite"):
            run.until(20)
        assert run.vector_steps == 26  # the failed step is not counted
        for ring in run.replay.rings.values():
            assert np.isfinite(ring).all() and np.abs(ring).max() < 1e3


def test_a_bad_seed_does_not_affect_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `on_env_error="reset"` the other seed learns exactly what it learns otherwise."""
    monkeypatch.setattr(Odd, "reward", np.nan)
    ended = []
    for faulty in (False, True):
        monkeypatch.setattr(Odd, "wrong", -1)
        with Run(config(tmp_path / "run", on_env_error="reset").resolved(), env=Odd) as run:
            if faulty:
                monkeypatch.setattr(Odd, "wrong", Odd.built - 1)
                with pytest.warns(
                    UserWarning, match="environment 1 of seed 8 gave a reward of nan"
                ):
                    run.until(20)
            else:
                run.until(20)
            rings = {name: ring[0].copy() for name, ring in run.replay.rings.items()}
            weights = [np.array(leaf[0]) for leaf in jax.tree.leaves(run.state)]
            assert np.isfinite(run.replay.rings["reward"]).all()
        ended.append((rings, weights))
    (rings, weights), (other_rings, other_weights) = ended
    for name, ring in rings.items():
        np.testing.assert_array_equal(ring, other_rings[name])
    for one, other in zip(weights, other_weights, strict=True):
        np.testing.assert_array_equal(one, other)


class Poison(Callback):
    """Puts NaN into the optimiser's moments, where no metric shows it."""

    def on_step(self, run: Run, info: StepInfo) -> None:
        if info.iteration == 8:
            moments = run.state.critic.opt_state[0]
            nu = jax.tree.map(lambda leaf: leaf.at[1].set(jnp.nan), moments.nu)
            opt_state = (moments._replace(nu=nu), *run.state.critic.opt_state[1:])
            run.state = run.state._replace(critic=run.state.critic._replace(opt_state=opt_state))


def test_a_state_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    plan = config(tmp_path / "run", iterations=8)
    with pytest.raises(UserError, match=r"nu.*of seed 8 is not finite at iteration 8.*iteration 4"):
        train.train(plan, env=probes.ActionReward, callbacks=[Poison()], quiet=True)
    assert load(RunFolder(tmp_path / "run")).metadata["iteration"] == 4
    train.resume(tmp_path / "run", env=probes.ActionReward, quiet=True)
    assert load(RunFolder(tmp_path / "run")).metadata["iteration"] == 8


def test_errors_about_actions_and_state_name_the_seed() -> None:
    action = np.zeros((2, 3, 1))
    require_finite_actions(action, 5, [7, 9])
    action[1, 2, 0] = np.nan
    with pytest.raises(BadNumberError, match="seed 9 draw actions"):
        require_finite_actions(action, 5, [7, 9])
    state = {"count": np.array([3, 4]), "w": np.ones((2, 2))}
    require_finite_state(state, 5, [7, 9])
    state["w"][0, 1] = np.inf
    with pytest.raises(BadNumberError, match="w of seed 7 is not finite at iteration 5"):
        require_finite_state(state, 5, [7, 9])


def test_the_report_has_every_column_and_is_json() -> None:
    column = np.array([[1.0, 3.0], [np.nan, 2.0]], np.float32)
    wide: Any = np.ones((2, 2, 3), np.float32)
    batch: Any = Batch(
        wide, wide, column, column, wide, np.array([[4, 5], [6, 7]]), {"improved": wide}
    )
    update = LastUpdate(12, {"loss": np.array([0.5, np.inf])}, batch)  # type: ignore[dict-item]
    with pytest.raises(BadNumberError, match="loss of seed 9 became inf at iteration 12") as found:
        require_finite_update(update, [7, 9])
    report = json.loads(json.dumps(found.value.report))
    assert report["batch"].keys() == {
        "obs", "action", "reward", "bootstrap", "next_obs", "improved",
    }  # fmt: skip
    assert report["batch"]["reward"] == {
        "shape": [2], "not_finite": 1, "min": 2.0, "max": 2.0, "mean": 2.0,
    }  # fmt: skip
    assert report["metrics"] == {"loss": "inf"}
