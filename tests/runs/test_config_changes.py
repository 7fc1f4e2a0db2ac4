"""A configuration edited before a resume is refused, or accepted with a flag."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from langevinrl.cli import resume as resume_verb
from langevinrl.errors import UserError
from langevinrl.model import Model
from langevinrl.runs import train
from langevinrl.runs.changes import changed_fields, require_unchanged
from langevinrl.runs.config import FIELDS_BESIDE_LEARNING, RunConfig
from langevinrl.storage.folder import RunFolder

# For every field that affects learning, another value.
OTHER: dict[str, Any] = {
    "env": "Hopper-v4", "env_kwargs": {"x": 1}, "seed": 4, "seeds": 3, "seed_step": 2,
    "num_envs": 3, "action_bound": 0.5, "random_actions": True, "warmup": 201, "batch_size": 9,
    "capacity": 301, "updates_per_iteration": 2, "n_step": 3, "reward_norm": True,
}  # fmt: skip


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run, tmp_path / "run")


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    table = json.loads(path.read_text())
    for name, value in changes.items():
        place = table["hyperparameters"] if name in table["hyperparameters"] else table
        place[name] = value
    path.write_text(json.dumps(table))


def test_every_field_that_affects_learning_is_compared() -> None:
    before = RunConfig("toys:wide", iterations=4, seed=3, seeds=2).resolved()
    saved = json.loads(json.dumps(dataclasses.asdict(before)))
    require_unchanged(saved, before, "config.json")
    named = {f.name for f in dataclasses.fields(RunConfig)}
    assert named - {*FIELDS_BESIDE_LEARNING, "agent", "hyperparameters", *OTHER} == set(), (
        "a new field: is it free?"
    )
    for name, value in OTHER.items():
        changed = changed_fields(saved, dataclasses.replace(before, **{name: value}))
        assert changed == {name: (saved[name], value)}
    for name in ("gamma", "learning_rate", "step_size"):
        own = before.hyperparameters | {name: 0.5}
        now = dataclasses.replace(before, hyperparameters=own)
        assert changed_fields(saved, now).keys() == {name}
    # A field that was removed from the file has its default again.
    own = {k: v for k, v in before.hyperparameters.items() if k != "gamma"}
    plain = dataclasses.replace(before, hyperparameters=own)
    assert changed_fields(saved, plain) == {}
    saved["hyperparameters"]["gamma"] = 0.9
    assert changed_fields(saved, plain).keys() == {"gamma"}


@pytest.mark.parametrize("change", [{"gamma": 0.5}, {"capacity": 400}, {"agent": "lql"}])
def test_an_edited_run_is_neither_resumed_nor_loaded(folder: Path, change: dict[str, Any]) -> None:
    edit(folder, **change)
    (name,) = change
    if name == "agent":
        edit(folder, hyperparameters={})
    before = (folder / "metrics.jsonl").read_bytes()
    for use in (
        lambda: train.resume(folder, 12, quiet=True, trust=True),
        lambda: Model.load(folder),
    ):
        with pytest.raises(UserError, match=rf"config\.json was changed.*{name} was"):
            use()
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_flag_accepts_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(folder, gamma=0.5, log_every=1)
    monkeypatch.setattr(resume_verb, "show", lambda _: None)  # drawing takes longer than the run
    resume_verb.main([str(folder), "--iterations", "9", "--accept-changes", "--trust"])
    assert RunFolder(folder).saved_iteration() == 9
    assert Model.load(folder).config.hyperparameters["gamma"] == 0.5


def test_a_larger_replay_is_refused_even_if_accepted(folder: Path) -> None:
    edit(folder, capacity=400)
    with pytest.raises(UserError, match="replay"):
        train.resume(folder, 12, accept_changes=True, quiet=True, trust=True)
