"""Runs with odd paths, links, no home, and a clock that jumps."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from langevinrl import cli
from langevinrl.errors import UserError
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.train import resume, train
from langevinrl.storage import trust

SMALL: dict[str, Any] = {
    "agent": "lql", "iterations": 2, "num_envs": 1, "warmup": 20, "batch_size": 8, "eval_every": 2,
    "eval_episodes": 1, "capacity": 100, "hyperparameters": {"hidden": (8,), "num_steps": 2},
}  # fmt: skip
NAME = "a run [/x] [bold] :smile: ünï 走 %s {}"


@pytest.fixture
def one(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    return RunConfig("toys:ending", out=str(tmp_path_factory.mktemp("odd") / "run"), **SMALL)


def test_run_with_an_odd_path_and_a_jumping_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brackets, spaces, other scripts, a link; no HOME, no terminal; a clock that jumps about."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    state = tmp_path / "state"
    monkeypatch.setenv(trust.VARIABLE, str(state))
    monkeypatch.setattr(trust, "_remembered", {})  # other tests have used the same name
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    jumps = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: 1e9 * (next(jumps) % 3))  # back and forth by decades
    old = os.umask(0o027)
    try:
        words = "--iterations 2 --num-envs 1 --warmup 20 --batch-size 8 --eval-every 2 --hidden 8"
        words += " --eval-episodes 1 --num-steps 2 --capacity 100"
        out = f"link/{NAME}"
        cli.main(["train", "lql", "--env", "toys:ending", "--out", out, *words.split()])
        assert capsys.readouterr().out.splitlines()[-1] == out
        cli.main(["resume", f"real/{NAME}", "--iterations", "3"])
    finally:
        os.umask(old)
    folder = tmp_path / "real" / NAME
    assert RunConfig.parse(folder / "config.json").iterations == 3
    wanted = {"config.json", "versions.json", "metrics.jsonl", "evaluations.csv"}
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert wanted <= found.keys() and "lock.1" not in found
    assert {mode for name, mode in found.items() if "." in name} == {0o640}
    (record,) = (state / "trained").iterdir()  # the own run was resumed by one command
    assert json.loads(record.read_text())["name"] == "env toys:ending"
    assert stat.S_IMODE(record.parent.stat().st_mode) & 0o077 == 0


class Break(Callback):
    """Does something to the folder in the middle of a run."""

    def __init__(self, folder: Path, how: str) -> None:
        self.folder, self.how = folder, how

    def on_step(self, run: Run, info: StepInfo) -> None:
        if self.how == "vanished":
            shutil.rmtree(self.folder)
            (self.folder / "checkpoints" / "x").open("w")
        if self.how == "memory":
            raise MemoryError
        raise OSError(getattr(errno, self.how), os.strerror(getattr(errno, self.how)))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("ENOSPC", "No space left on device"),
        ("EDQUOT", "quota exceeded"),
        ("EROFS", "Read-only file system"),
        ("vanished", "No such file or directory"),
        ("memory", "memory ran out"),
    ],
)
def test_system_error_during_a_run_gives_one_sentence(one: RunConfig, how: str, said: str) -> None:
    folder = Path(str(one.out))
    with pytest.raises(UserError, match=f"(?i){said}.*There is no checkpoint yet"):
        train(one, callbacks=[Break(folder, how)], quiet=True)
    assert not list(folder.glob("lock.*"))


def test_error_of_a_user_callback_is_not_changed(one: RunConfig) -> None:
    with pytest.raises(ConnectionRefusedError):
        train(one, callbacks=[Break(Path(str(one.out)), "ECONNREFUSED")], quiet=True)


def test_folder_without_permission_is_refused_before_anything_is_built(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(UserError, match="permission denied"):
        resume(folder)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_configuration_is_created_by_one_process_only(
    one: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(str(one.out))
    path.mkdir()
    other = dataclasses.replace(one, seed=9)
    for _ in range(2):  # by a second name, and where a file system has none
        other.write(path / "config.json", exclusive=True)
        with pytest.raises(UserError, match="there already: another process"):
            one.write(path / "config.json", exclusive=True)
        assert RunConfig.parse(path / "config.json") == other
        assert [file.name for file in path.iterdir()] == ["config.json"]
        (path / "config.json").unlink()
        monkeypatch.setattr(os, "link", no_links)


def no_links(*_: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
