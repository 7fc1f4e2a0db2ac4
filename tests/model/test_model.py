"""Model: learn, predict, evaluate."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import OBS, act

import langevinrl as lrl
from langevinrl import Model, UserError
from langevinrl.runs.loop import Run, StepInfo

# One process, so that compiled programs are shared.
pytestmark = pytest.mark.xdist_group("model")


def test_learning_twice_equals_learning_once(
    tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    model = Model("nclql", "toys:wide", out=tmp_path / "run", **tiny)
    assert model.learn(iterations=4, progress_bar=False) is model
    assert model.folder == tmp_path / "run"
    assert model.iteration == 4
    half = act(model)
    model.learn(total_timesteps=7, progress_bar=False)  # two environments, so four iterations
    assert model.iteration == 8
    assert (act(model) != half).any()
    for same in (Model.load(tiny_run), Model.load(tmp_path / "run")):  # never stopped; from disk
        np.testing.assert_array_equal(act(model), act(same))
    with pytest.raises(UserError, match="all 8 iterations of this run are done"):
        model.learn()


def test_evaluations_follow_the_number_of_further_iterations(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langevinrl.model.read_model", None)  # weights are not read from disk
    fields = {name: value for name, value in tiny.items() if name != "eval_every"}
    fields["eval_episodes"] = 1
    model = Model("nclql", "toys:wide", out=tmp_path / "run", **fields)
    assert model.learn(2, progress_bar=False).config.eval_every == 2
    assert model.learn(40, progress_bar=False).config.eval_every == 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_model_keeps_what_it_learned(
    number: signal.Signals, tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model("nclql", "toys:wide", out=str(tmp_path / "run"), **tiny)
    advance = Run.advance

    def interrupted(job: Run) -> StepInfo:
        if job.iteration == 2:
            os.kill(os.getpid(), number)
        return advance(job)

    monkeypatch.setattr(Run, "advance", interrupted)
    if number == signal.SIGINT:
        with pytest.warns(UserWarning, match=r"stopped at iteration 3; learn\(\) continues"):
            assert model.learn(iterations=8, progress_bar=False) is model
    else:
        with pytest.raises(KeyboardInterrupt):
            model.learn(iterations=8, progress_bar=False)
    monkeypatch.undo()
    assert model.iteration == 3
    assert model.learn(progress_bar=False).iteration == 8  # to the end of the run


def test_predictions_are_inside_the_action_space(model: Model) -> None:
    actions = act(model)
    assert actions.shape == (4, 1) and actions.dtype == np.float32
    assert abs(actions).max() <= 2.0
    many = act(model, np.random.default_rng(1).normal(size=(200, 3)))
    assert abs(many).max() > 1.0  # the task's action box is wider than the agent's
    np.testing.assert_array_equal(act(model, OBS[2]), act(model, OBS[2].tolist()))
    assert (act(model, seed_index=1) != actions).any()


def test_modes_differ_in_their_noise(tiny_run: Path) -> None:
    model, other = Model.load(tiny_run), Model.load(tiny_run)
    np.testing.assert_array_equal(act(model), act(model, mode="keyed"))
    free = act(model, mode="noise-free")
    np.testing.assert_array_equal(free, act(model, mode="noise-free"))
    drawn = [act(model, deterministic=False) for _ in range(3)]
    assert (drawn[0] != drawn[1]).all() and (drawn[1] != drawn[2]).all()
    np.testing.assert_array_equal(drawn[0], act(other, deterministic=False))  # by the model's seed
    assert (free != act(model)).any() and all(abs(a).max() <= 2.0 for a in (free, *drawn))
    with pytest.raises(
        UserError, match="mode is 'mean'; expected one of keyed, sampled, noise-free"
    ):
        model.predict(OBS, mode="mean")  # type: ignore[arg-type]


def test_an_observation_of_the_wrong_shape_is_refused(model: Model) -> None:
    for wrong in (OBS[:, :2], OBS[None], OBS[0, :2], 1.0):
        with pytest.raises(UserError, match=r"expected \(3,\), or \(B, 3\)"):
            model.predict(wrong)


def test_evaluation_is_repeatable_and_plays_every_seed(model: Model) -> None:
    played = model.evaluate(episodes=3, seed=1)
    assert [(e.seed, e.episode, e.length) for e in played.episodes] == [
        (seed, episode, 7) for seed in (3, 4) for episode in range(3)
    ]
    assert (played.mode, played.iteration) == ("keyed", 8)
    assert model.evaluate(episodes=3, seed=1) == played
    assert model.evaluate(episodes=3, seed=2) != played
    for mode in ("sampled", "noise-free"):
        other = model.evaluate(episodes=3, seed=1, mode=mode)  # type: ignore[arg-type]
        assert other.mode == mode and other.mean != played.mean
        assert other == model.evaluate(episodes=3, seed=1, mode=mode)  # type: ignore[arg-type]
    for wrong in ({"episodes": 0}, {"seed": -1}):
        with pytest.raises(UserError, match="cannot play"):
            model.evaluate(**wrong)  # type: ignore[arg-type]


def test_the_public_names_exist() -> None:
    for name in lrl.__all__:
        assert getattr(lrl, name) is not None
    assert lrl.callbacks.StopOnReturn and lrl.samplers.sample
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        lrl.modle  # noqa: B018
