"""Folders that train and resume refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_loop import config
from tiny import lql_config

from langevinrl.errors import UserError
from langevinrl.model import Model
from langevinrl.runs import train
from langevinrl.runs.config import RunConfig


def test_a_folder_with_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "best").mkdir(parents=True)
    (tmp_path / "metrics.jsonl").write_text("precious")
    with pytest.raises(UserError, match=r"has metrics\.jsonl, checkpoints but no config\.json"):
        train.train(config("Hopper-v4", tmp_path), quiet=True)
    assert (tmp_path / "metrics.jsonl").read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoints", "metrics.jsonl"}


def test_a_run_folder_is_not_overwritten(tmp_path: Path) -> None:
    plan = config("Hopper-v4", tmp_path)
    plan.resolved().write(tmp_path / "config.json")
    (tmp_path / "metrics.jsonl").write_text("precious")
    with pytest.raises(UserError, match="resume"):
        train.train(plan, quiet=True)
    assert (tmp_path / "metrics.jsonl").read_text() == "precious"


def test_resuming_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"config\.json"):
        train.resume(tmp_path)


def test_a_saved_model_cannot_be_resumed(tiny_run: Path, tmp_path: Path) -> None:
    Model.load(tiny_run).save(tmp_path / "model")
    with pytest.raises(UserError, match=r"lacks replay, envs: it is a saved model"):
        train.resume(tmp_path / "model")


def test_a_run_in_the_current_directory(here: Path) -> None:
    assert train.train(lql_config(Path(".")), quiet=True) == Path(".")
    assert RunConfig.read(here / "config.json").out == "."
