"""The front door: learn, predict, evaluate, save, load."""

from __future__ import annotations

import functools
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys

from langevinrl import Model, UserError
from langevinrl.runs.loop import Run, StepInfo

OBS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tiny_run: Path) -> Model:
    return Model.load(tiny_run)


def test_learning_writes_a_run_folder_and_goes_on_when_asked_again(
    tiny_fields: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    model = Model("nclql", "toys:wide", out=str(tmp_path / "run"), **tiny_fields)
    assert model.learn(iterations=4, quiet=True) is model
    assert model.folder == tmp_path / "run"
    assert model.metadata["iteration"] == 4
    half = model.predict(OBS)
    model.learn(iterations=8, quiet=True)
    assert model.metadata["iteration"] == 8
    assert (model.predict(OBS) != half).any()
    whole = Model.load(tiny_run)  # the same run, never stopped
    np.testing.assert_array_equal(model.predict(OBS), whole.predict(OBS))


def test_an_interrupted_model_remembers_where_it_was(
    tiny_fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model("nclql", "toys:wide", out=str(tmp_path / "run"), **tiny_fields)
    advance = Run.advance

    def interrupted(job: Run) -> StepInfo:
        if job.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(job)

    monkeypatch.setattr(Run, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(iterations=8, quiet=True)
    monkeypatch.undo()
    assert model.metadata["iteration"] == 3
    assert model.learn(iterations=4, quiet=True).metadata["iteration"] == 4


def test_a_prediction_lies_in_the_tasks_box(model: Model) -> None:
    actions = model.predict(OBS)
    assert actions.shape == (4, 1) and actions.dtype == np.float32
    assert abs(actions).max() <= 2.0
    many = model.predict(np.random.default_rng(1).normal(size=(200, 3)))
    assert abs(many).max() > 1.0  # the task's box is wider than the agent's


def test_one_observation_gives_one_action(model: Model) -> None:
    one = model.predict(OBS[2])
    assert one.shape == (1,)
    np.testing.assert_allclose(one, model.predict(OBS)[2], atol=1e-5)
    np.testing.assert_array_equal(one, model.predict(OBS[2].tolist()))


def test_each_trained_seed_can_be_asked(model: Model) -> None:
    assert (model.predict(OBS, seed_index=0) != model.predict(OBS, seed_index=1)).any()
    for index in (2, -1):
        with pytest.raises(UserError, match="trained seeds: 2"):
            model.predict(OBS, seed_index=index)


def test_an_observation_of_the_wrong_size_is_refused(model: Model) -> None:
    for wrong in (OBS[:, :2], OBS[None], OBS[0, :2], 1.0):
        with pytest.raises(UserError, match=r"expected \(3,\) or \(B, 3\)"):
            model.predict(wrong)


def test_evaluation_is_repeatable_and_plays_every_seed(model: Model) -> None:
    episodes = model.evaluate(episodes=3, seed=1)
    assert [(e.seed, e.episode, e.length) for e in episodes] == [
        (seed, episode, 7) for seed in (3, 4) for episode in range(3)
    ]
    assert model.evaluate(episodes=3, seed=1) == episodes
    assert model.evaluate(episodes=3, seed=2) != episodes
    for wrong in ({"episodes": 0}, {"seed": -1}):
        with pytest.raises(UserError, match="cannot play"):
            model.evaluate(**wrong)


def test_a_saved_model_acts_the_same_and_leaves_replay_behind(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "small")
    files = [path.name for path in (tmp_path / "small" / "checkpoints" / "000000008").iterdir()]
    assert sorted(files) == ["metadata.json", "state.safetensors"]
    copy = Model.load(tmp_path / "small")
    for index in (0, 1):
        ours, theirs = model.predict(OBS, index), copy.predict(OBS, index)
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(UserError, match="already holds"):
        model.save(tmp_path / "small")
    copy.save(tmp_path / "again")
    np.testing.assert_array_equal(Model.load(tmp_path / "again").predict(OBS), model.predict(OBS))


def test_a_factory_and_its_name(tmp_path: Path, tiny_run: Path, model: Model) -> None:
    assert Model("lql", toys.timed).config.env == "toys:timed"
    assert Model("lql", functools.partial(toys.timed)).config.env == "functools:partial"
    same = Model.load(tiny_run, env=toys.wide)
    np.testing.assert_array_equal(same.predict(OBS), model.predict(OBS))


def test_a_model_that_has_not_learned_says_so(tmp_path: Path) -> None:
    fresh = Model("lql", "toys:timed")
    for call in (fresh.evaluate, lambda: fresh.predict(OBS), lambda: fresh.save(tmp_path)):
        with pytest.raises(UserError, match="not learned yet"):
            call()


def test_unknown_names_are_refused_at_once() -> None:
    with pytest.raises(UserError, match="did you mean nclql"):
        Model("nclqll", "toys:timed")
    with pytest.raises(UserError, match="did you mean batch_size"):
        Model("nclql", "toys:timed", batchsize=3)
    with pytest.raises(UserError, match="did you mean sigma_max"):
        Model("nclql", "toys:timed", sigma_maxx=3)
    with pytest.raises(UserError, match="unknown field 'spec'"):
        Model("nclql", "toys:timed", spec=None)


def test_bad_values_are_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for fields in ({"gamma": 2.0}, {"iterations": 0}, {"batch_size": 0}):
        with pytest.raises(UserError, match="expected"):
            Model("lql", "toys:timed", out=str(out), **({"iterations": 1} | fields)).learn()
    with pytest.raises(UserError, match="at least 1"):
        Model("lql", "toys:timed", out=str(out)).learn(iterations=0)
    assert not out.exists()


def test_what_cannot_be_loaded(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        Model.load(tmp_path)
    broken = shutil.copytree(tiny_run, tmp_path / "broken")
    (weights,) = broken.glob("checkpoints/*/state.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(UserError, match="damaged"):
        Model.load(broken)
    weights.unlink()
    with pytest.raises(UserError, match="lacks state"):
        Model.load(broken)
    shutil.rmtree(broken / "checkpoints")
    with pytest.raises(UserError, match="no checkpoint"):
        Model.load(broken)
    with pytest.raises(UserError, match="expected float32"):
        Model.load(tiny_run, env=lambda: toys.Echo(toys.timed().action_space))
