"""Model: save, load, continue."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys
from asking import act

from langevinrl import Model, UserError

# One process, so that compiled programs are shared.
pytestmark = pytest.mark.xdist_group("model")


def test_a_saved_model_predicts_the_same_and_has_no_replay(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "small")
    files = [path.name for path in (tmp_path / "small" / "checkpoints" / "000000008").iterdir()]
    assert sorted(files) == ["manifest.json", "metadata.json", "state.safetensors"]
    copy = Model.load(tmp_path / "small")
    for index in (0, 1):
        ours, theirs = act(model, seed_index=index), act(copy, seed_index=index)
        np.testing.assert_array_equal(ours, theirs)
    copy.save(tmp_path / "again")
    again = Model.load(tmp_path / "again", compile=True)
    np.testing.assert_array_equal(act(again), act(model))


def test_saving_replaces_a_model_but_never_a_run(
    model: Model, tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    other = Model("lql", "toys:timed", out=tmp_path / "run", hidden=[8], warmup=200, batch_size=8)
    other.learn(9, progress_bar=False).save(tmp_path / "model")
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(act(Model.load(tmp_path / "model")), act(model))
    for place in (tiny_run, tmp_path / "run"):
        with pytest.raises(UserError, match="already holds a run"):
            model.save(place)
    with pytest.raises(UserError, match=r"saved as a folder: write save\('.*/x'\)"):
        model.save(tmp_path / "x.zip")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        model.save(tmp_path / "file")


def test_saved_files_have_ordinary_permissions(model: Model, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    model.save(tmp_path / "model")
    ordinary = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {ordinary}


def test_a_saved_model_continues_in_its_run_folder(
    tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    first = Model("nclql", "toys:wide", out=tmp_path / "run", **tiny).learn(4, progress_bar=False)
    first.save(tmp_path / "model")
    shutil.copytree(tmp_path / "run", tmp_path / "kept")
    model = Model.load(tmp_path / "model").learn(iterations=4, progress_bar=False)
    assert model.folder == tmp_path / "run"
    np.testing.assert_array_equal(act(model), act(Model.load(tiny_run)))
    late = Model.load(tmp_path / "model")
    with pytest.raises(UserError, match=r"of iteration 4, and its run in .* is at 8"):
        late.learn(iterations=1)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(UserError, match=r"the run it was saved from is not in .* any more"):
        late.learn(iterations=1)
    other = Model("nclql", "toys:wide", out=tmp_path / "run", **(tiny | {"seed": 9}))
    other.learn(4, progress_bar=False)
    with pytest.raises(UserError, match="now holds another run"):
        late.learn(iterations=1)


def test_loading_builds_no_environment(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model("nclql", lambda: toys.wide(), out=tmp_path / "run", **tiny)
    model.learn(2, progress_bar=False)
    monkeypatch.setattr(toys, "wide", None)
    loaded = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(act(loaded), act(model))
    for call in (loaded.evaluate, lambda: loaded.learn(1)):
        with pytest.raises(UserError, match=r"Model\.load\(DIR, env=\.\.\.\)"):
            call()
    monkeypatch.undo()
    again = Model.load(tmp_path / "run", env=toys.wide)
    assert again.evaluate(episodes=1).mean == model.evaluate(episodes=1).mean
    assert again.learn(1, progress_bar=False).iteration == 3


def test_damaged_and_unsuitable_folders_are_refused(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        Model.load(tmp_path)
    broken = shutil.copytree(tiny_run, tmp_path / "broken")
    for weights in broken.glob("checkpoints/*/state.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(UserError, match="damaged"):
        Model.load(broken)
    for weights in broken.glob("checkpoints/*/state.safetensors"):
        weights.unlink()
    with pytest.raises(UserError, match="damaged: No such file"):
        Model.load(broken)
    shutil.rmtree(broken / "checkpoints")
    with pytest.raises(UserError, match="no checkpoint"):
        Model.load(broken)
    with pytest.raises(UserError, match="was trained on"):
        Model.load(tiny_run, env=lambda: toys.Echo(toys.timed().action_space))
