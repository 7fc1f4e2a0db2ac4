"""Saved models: the spaces of the task are covered by the manifest, and odd ones are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from langevinrl import Model
from langevinrl.errors import UserError
from langevinrl.storage.files import digest_file
from langevinrl.storage.manifest import digest_of

BOX = {"kind": "Box", "shape": [1], "dtype": "float32", "low": -2.0, "high": 2.0}
ODD: list[dict[str, Any]] = [
    {"bound": 0}, {"bound": -1.0}, {"bound": None}, {"bound": float("nan")}, {"bound": "1"},
    {"action": None}, {"action": {"kind": "Discrete", "n": 3, "start": 0}}, {"action": []},
    {"action": BOX | {"shape": [10**12]}}, {"action": BOX | {"shape": [-1]}},
    {"action": BOX | {"high": "inf"}}, {"action": BOX | {"low": 3.0}},
    {"action": BOX | {"dtype": "object"}}, {"action": BOX | {"dtype": "no"}},
    {"observation": {"kind": "MultiBinary", "shape": [2**40, 2**40]}},
    {"observation": {"kind": "Discrete", "n": 0, "start": 0}}, {"observation": {"kind": "Dict"}},
    {"observation": {"kind": "Other"}}, {"observation": BOX | {"shape": [5]}},
]  # fmt: skip


@pytest.fixture(params=["run", "saved model"])
def folder(request: pytest.FixtureRequest, tiny_run: Path, tmp_path: Path) -> Path:
    """A folder with one checkpoint."""
    if request.param == "saved model":
        Model.load(tiny_run).save(tmp_path / "model")
        return tmp_path / "model"
    run = shutil.copytree(tiny_run, tmp_path / "run")
    shutil.rmtree(run / "checkpoints" / "000000004")
    return run


def change(folder: Path, spaces: dict[str, Any], *, with_digests: bool) -> None:
    """Change the spaces, as damage does, or as a sender who knows the format."""
    (checkpoint,) = (folder / "checkpoints").iterdir()
    path = checkpoint / "metadata.json"
    table = json.loads(path.read_text())
    table["spaces"] |= spaces
    path.write_text(json.dumps(table))
    if with_digests:
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        manifest["files"]["metadata.json"] = digest_file(path)._asdict()
        digest = {"digest": digest_of(manifest)}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest | digest))


def test_changed_spaces_are_detected(folder: Path) -> None:
    """One bit turns the bound 2.0 of an action into 6.0."""
    change(folder, {"action": BOX | {"high": 6.0}}, with_digests=False)
    with pytest.raises(UserError, match=r"metadata\.json is damaged"):
        Model.load(folder)


@pytest.mark.parametrize("spaces", ODD, ids=str)
def test_odd_spaces_give_one_sentence(
    spaces: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints" / "000000004")
    change(folder, spaces, with_digests=True)
    with pytest.raises(UserError) as caught:
        Model.load(folder)
    assert len(str(caught.value).splitlines()) == 1
