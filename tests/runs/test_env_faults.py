"""A run whose environment fails stops with one sentence, or rebuilds it and continues."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys
from tiny import TINY_RUN

from langevinrl.envs.faults import EnvError
from langevinrl.logs.episodes import EpisodeStats
from langevinrl.runs import finish
from langevinrl.runs.config import RunConfig
from langevinrl.runs.train import resume, train
from langevinrl.storage.folder import RunFolder


class Fragile(toys.SavedClock):
    """Fails at the steps in `at`, counted over all environments."""

    total = 0
    at: frozenset[int] = frozenset()
    error: BaseException = RuntimeError("the wheel came off")
    directory = "."

    def step(self, action: np.ndarray) -> Any:
        os.chdir(Fragile.directory)
        Fragile.total += 1
        if Fragile.total in Fragile.at:
            raise Fragile.error
        return super().step(action)


def make() -> Any:
    return toys.gym.wrappers.TimeLimit(Fragile(), 7)


def run(out: Path, at: set[int], **changes: Any) -> tuple[list[dict[str, str]], int]:
    """Return the evaluations of a tiny run that fails at some steps, and its number of steps."""
    Fragile.total, Fragile.at = 0, frozenset(at)
    fields = TINY_RUN | {"agent": "lql", "hyperparameters": {"hidden": (8, 8)}, "seeds": 1}
    config = RunConfig("fragile", out=str(out), **(fields | changes))
    rows = RunFolder(train(config, env=make, quiet=True)).read_evaluations()
    return [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows], Fragile.total


def test_a_failed_environment_stops_the_run_or_is_rebuilt(
    tmp_path: Path,
) -> None:
    sound, steps = run(tmp_path / "sound", set())
    with pytest.raises(EnvError, match=r"the wheel came off.*on_env_error=reset.*no checkpoint"):
        run(tmp_path / "stop", {100})
    Fragile.total = 0
    with pytest.warns(UserWarning, match="rebuilt"):
        resume(tmp_path / "stop", env=make, on_env_error="reset", quiet=True)
    # The very last steps belong to the last evaluation.
    with pytest.warns(UserWarning, match="All episodes are played again"):
        again, more = run(tmp_path / "again", {steps - 3}, on_env_error="reset")
    assert again == sound and more > steps
    with pytest.warns(UserWarning, match="rebuilt"):
        rows, _ = run(tmp_path / "reset", {100}, on_env_error="reset")
    assert [row["iterations"] for row in rows] == [row["iterations"] for row in sound]


def test_sys_exit_in_an_environment_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fragile, "error", SystemExit(0))
    with pytest.raises(EnvError, match=r"raised SystemExit.* in step\(\).*no checkpoint"):
        run(tmp_path / "run", {100})


def test_an_environment_may_change_the_directory(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fragile, "directory", str(tmp_path_factory.mktemp("elsewhere")))
    run(Path("run"), set())
    assert RunFolder(here / "run").saved_iteration() == TINY_RUN["iterations"]


def test_system_errors_are_explained(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.shown = "run"
    closed = finish._explain(OSError(errno.EBADF, "Bad file descriptor"), folder)
    assert "an environment that closes file descriptors" in str(closed)
    denied = finish._explain(PermissionError(errno.EACCES, "no", str(folder.metrics)), folder)
    assert str(denied).startswith("cannot write to run: ")
    assert finish._explain(PermissionError(errno.EACCES, "no", "/elsewhere"), folder) is None


def test_a_lost_episode_is_not_counted() -> None:
    stats = EpisodeStats((1, 2))
    none, ended = np.zeros((1, 2), bool), np.ones((1, 2), bool)
    stats.add(np.full((1, 2), 10.0), none)
    stats.add(np.ones((1, 2)), none, cut=np.array([[True, False]]))
    stats.add(np.ones((1, 2)), ended)
    assert list(stats.recent[0]) == [(2.0, 2), (12.0, 3)]
