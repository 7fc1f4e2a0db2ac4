"""Damaged checkpoints are detected, and the one before is used with a warning."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.errors import UserError
from langevinrl.model import Model
from langevinrl.runs import train
from langevinrl.storage import manifest
from langevinrl.storage.checkpoint import CheckpointData, keep_weights_only, load, save
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.manifest import digest_of

FILES = (
    "state.safetensors", "replay.safetensors", "envs.safetensors", "metadata.json",
    "manifest.json",
)  # fmt: skip
Capture = pytest.CaptureFixture[str]


def saved(value: float) -> CheckpointData:
    arrays = {"a": np.full((2, 3), value, np.float32), "on": np.array([True, False])}
    groups = {"state": arrays, "replay": {"obs": np.arange(8.0)}, "envs": {"obs": np.ones(3)}}
    return CheckpointData(groups, {"iteration": value}, {"gamma": 0.99})


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Two checkpoints."""
    for number in (1, 2):
        save(RunFolder(tmp_path), number, saved(float(number)), keep=2)
    return RunFolder(tmp_path)


def assert_falls_back(folder: RunFolder, capsys: Capture, what: object) -> None:
    assert load(folder).metadata["iteration"] == 1.0, what
    said = capsys.readouterr().err
    assert said.count("\n") == 1, what
    assert "damaged" in said and "Using checkpoint 000000001 instead" in said, what


@pytest.mark.parametrize("file", FILES)
def test_flipped_bit_is_detected(folder: RunFolder, file: str, capsys: Capture) -> None:
    path = folder.checkpoints / "000000002" / file
    whole, draw = path.read_bytes(), random.Random(file)
    for place in draw.sample(range(8 * len(whole)), 50):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        assert_falls_back(folder, capsys, (file, place))
    path.write_bytes(whole)
    assert load(folder).metadata["iteration"] == 2.0
    assert not capsys.readouterr().err


@pytest.mark.parametrize("file", FILES)
def test_file_truncated_emptied_extended_or_deleted_is_detected(
    folder: RunFolder, file: str, capsys: Capture
) -> None:
    path = folder.checkpoints / "000000002" / file
    whole = path.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], whole[:7], b"", whole + b" x"):
        path.write_bytes(content)
        assert_falls_back(folder, capsys, (file, len(content)))
    path.unlink()
    assert_falls_back(folder, capsys, file)
    os.mkfifo(path)  # which to open would wait for ever
    assert_falls_back(folder, capsys, file)
    path.unlink()
    path.mkdir()
    assert_falls_back(folder, capsys, file)


def test_if_all_checkpoints_are_damaged_each_is_named(folder: RunFolder) -> None:
    for path in folder.saved_checkpoints():
        (path / "state.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match=r"000000002.*damaged.*000000001.*damaged"):
        load(folder)
    assert load(folder, ["envs"]).metadata["iteration"] == 2.0  # what is not asked for is not read


def test_manifest_of_another_format_is_refused_by_its_number(folder: RunFolder) -> None:
    path = folder.checkpoints / "000000002" / "manifest.json"
    table = json.loads(path.read_text()) | {"format": manifest.FORMAT + 1, "news": [1]}
    path.write_text(json.dumps(table | {"digest": digest_of(table)}))
    with pytest.raises(UserError, match=f"has the format {manifest.FORMAT + 1}; this version"):
        load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"files": None}, {"files": {"../state.safetensors": {"size": 1}}}, {"config": 3},
        {"files": {"metadata.json": {"size": "1"}}}, {"files": {"metadata.json": [1, "x"]}},
        {"files": {}},
    ],
)  # fmt: skip
def test_forged_manifest_is_refused(
    folder: RunFolder, change: dict[str, Any], capsys: Capture
) -> None:
    path = folder.checkpoints / "000000002" / "manifest.json"
    table = json.loads(path.read_text()) | change
    path.write_text(json.dumps(table | {"digest": digest_of(table)}))
    assert_falls_back(folder, capsys, change)


def test_weights_without_replay_load_but_cannot_be_resumed(
    folder: RunFolder, capsys: Capture
) -> None:
    keep_weights_only(folder)
    (left,) = folder.saved_checkpoints()
    names = {path.name for path in left.iterdir()}
    assert names == {"state.safetensors", "metadata.json", "manifest.json"}
    assert load(folder).metadata["iteration"] == 2.0
    with pytest.raises(UserError, match="lacks replay, envs: it is a saved model"):
        load(folder, ["state", "replay", "envs"])
    assert not capsys.readouterr().err
    keep_weights_only(RunFolder(folder.path / "nothing"))


def evaluations(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: row[name] for name in row if name != "wall_seconds"} for row in rows]


def test_run_resumes_exactly_from_the_checkpoint_before_a_damaged_one(
    tiny_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Its logs, which are longer than the older checkpoint knew, are cut back to it."""
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    path = folder / "checkpoints" / "000000008" / "replay.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)
    assert Model.load(folder).iteration == 8  # whose weights are sound
    train.resume(folder, quiet=True, trust=True)
    assert "Using checkpoint 000000004 instead" in capsys.readouterr().err
    for group in ("state", "replay", "envs"):
        file = f"checkpoints/000000008/{group}.safetensors"
        assert (folder / file).read_bytes() == (tiny_run / file).read_bytes()
    assert evaluations(folder) == evaluations(tiny_run)
    assert (folder / "metrics.jsonl").read_text() == (tiny_run / "metrics.jsonl").read_text()
