"""Tests of trackers: the numbers they receive, resumed runs and failures."""

from __future__ import annotations

import json
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tiny import lql_config as config

from langevinrl.errors import UserError
from langevinrl.logs import trackers
from langevinrl.logs.trackers import TrackedRun, Tracker
from langevinrl.runs.track import mean_values
from langevinrl.runs.train import resume, train

# The packages use deprecated functions.
THEIRS = pytest.mark.filterwarnings("ignore")
TAGS = {
    "rollout/ep_rew_mean", "rollout/ep_len_mean",
    "eval/mean_reward", "eval/std_reward", "eval/mean_ep_length",
    "time/iterations", "time/total_timesteps", "time/time_elapsed", "time/fps",
    "train/critic/bellman", "train/critic/backup",
    "sampler/clipped", "sampler/spread", "sampler/movement", "sampler/score_norm",
}  # fmt: skip


class Notebook(Tracker):
    """A tracker that keeps what it receives."""

    package = "json"
    opened: list[Notebook] = []  # noqa: RUF012  emptied by each test

    def __init__(self, run: TrackedRun) -> None:
        self.run, self.lines, self.closed = run, [], False  # type: ignore[var-annotated]
        self.opened.append(self)

    def log(self, step: int, values: dict[str, float]) -> None:
        self.lines.append((step, values))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[Notebook]:
    monkeypatch.setitem(trackers.KINDS, "notebook", Notebook)
    Notebook.opened = []
    return Notebook.opened


def test_a_tracker_receives_all_tags_over_environment_steps(
    notebook: list[Notebook], tmp_path: Path
) -> None:
    train(config(tmp_path / "run", track=("notebook",), log_every=3, seeds=2), quiet=True)
    (book,) = notebook
    assert book.closed and book.run.folder == tmp_path / "run"
    assert book.run.config["env"] == "toys:wide" and book.run.config["num_steps"] == 3
    assert {tag for _, values in book.lines for tag in values} == TAGS
    # Ten vector steps of warm-up and six more, two environments each.
    assert [step for step, _ in book.lines] == [26, 26, 32, 32]
    metrics, evaluation = book.lines[-2][1], book.lines[-1][1]
    assert metrics["time/total_timesteps"] == 32 and metrics["time/iterations"] == 6
    assert 0 < metrics["time/fps"] < 32 / 1e-3
    assert evaluation["eval/mean_ep_length"] == 7.0
    rows = [json.loads(r) for r in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    last = [row["critic/bellman"] for row in rows[-2:]]
    assert metrics["train/critic/bellman"] == pytest.approx(sum(last) / 2)


def test_a_seed_without_episodes_is_left_out_of_the_mean() -> None:
    rows = [{"seed": 0, "critic/bellman": 1.0}, {"seed": 1, "critic/bellman": 3.0}]
    rows[1]["rollout/ep_rew_mean"] = 5.0
    assert mean_values(rows) == {"train/critic/bellman": 2.0, "rollout/ep_rew_mean": 5.0}


@pytest.mark.parametrize("method", ["__init__", "log", "close"])
def test_a_tracker_that_fails_is_reported_once_and_dropped(
    method: str, notebook: list[Notebook], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def fail(*_: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setitem(trackers.KINDS, "broken", type("Broken", (Notebook,), {method: fail}))
    plan = config(tmp_path / "run", track=("broken", "notebook"), log_every=1)
    folder = train(plan, quiet=True)
    (said,) = capsys.readouterr().err.splitlines()
    assert "broken failed and is dropped (ConnectionError: no network)" in said
    (other,) = (one for one in notebook if type(one) is Notebook)
    assert other.closed and len(other.lines) == 8  # it received everything
    assert (folder / "checkpoints" / "000000006").exists()


def test_a_tracker_that_hangs_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    never = threading.Event()
    monkeypatch.setattr(Notebook, "log", lambda *_: never.wait(20))
    monkeypatch.setattr(trackers, "PATIENCE", 0.1)
    monkeypatch.setitem(trackers.KINDS, "slow", Notebook)
    began = time.monotonic()
    folder = train(config(tmp_path / "run", track=("slow",)), quiet=True)
    assert time.monotonic() - began < 18
    never.set()
    assert "slow did not finish in time" in capsys.readouterr().err
    assert (folder / "checkpoints" / "000000006").exists()


def test_unknown_and_missing_trackers_raise_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="did you mean tensorboard"):
        train(config(tmp_path / "run", track=("tensorbord",)), quiet=True)
    monkeypatch.setattr(Notebook, "package", "not_a_package")
    monkeypatch.setitem(trackers.KINDS, "gone", Notebook)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[gone\]'"):
        train(config(tmp_path / "run", track=("gone",)), quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_goes_on_without_a_missing_tracker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(trackers.KINDS, "gone", Notebook)
        folder = train(config(tmp_path / "run", iterations=3, track=("gone",)), quiet=True)
    resume(folder, 6, quiet=True)
    assert "gone failed" in capsys.readouterr().err
    assert (folder / "checkpoints" / "000000006").exists()


def events(folder: Path) -> list[tuple[int, str, float]]:
    """Return step, tag and value of every number in TensorBoard's files, in order of time."""
    event = pytest.importorskip("tensorboardX.proto.event_pb2").Event
    found = []
    for path in sorted(folder.glob("events*"), key=lambda path: path.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            one, data = event.FromString(data[12 : 12 + size]), data[16 + size :]
            found += [(one.step, v.tag, v.simple_value) for v in one.summary.value]
    return found


@THEIRS
def test_tensorboard_files_contain_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    plan = config(tmp_path / "run", iterations=3, track=("tensorboard",), log_every=3)
    folder = train(plan, quiet=True)
    resume(folder, 6, quiet=True)
    found = events(folder / "tensorboard")
    assert {tag for _, tag, _ in found} == TAGS
    lengths = [(step, value) for step, tag, value in found if tag == "eval/mean_ep_length"]
    assert lengths == [(26, 7.0), (32, 7.0)]
    losses = [value for _, tag, value in found if tag == "train/critic/bellman"]
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    assert losses == pytest.approx([row["critic/bellman"] for row in rows])


@THEIRS
def test_mlflow_has_the_numbers_in_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlparse")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    plan = config(tmp_path / "run", iterations=3, track=("mlflow",), log_every=3)
    folder = train(plan, quiet=True)
    resume(folder, 6, quiet=True)
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("langevinrl").experiment_id
    (run,) = client.search_runs([place])
    assert run.info.run_name == "run" and run.info.status == "FINISHED"
    assert run.data.metrics.keys() == TAGS and run.data.params["agent"] == "lql"
    lengths = client.get_metric_history(run.info.run_id, "eval/mean_ep_length")
    assert [(one.step, one.value) for one in lengths] == [(26, 7.0), (32, 7.0)]


@THEIRS
def test_wandb_has_the_numbers_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / name.lower()))
    plan = config(tmp_path / "run", track=("wandb",), log_every=3)
    folder = train(plan, quiet=True)
    (path,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    written = path.read_bytes()
    for tag in TAGS:
        assert tag.encode() in written, tag
    assert json.loads((folder / "trackers.json").read_text())["wandb"] in path.name
