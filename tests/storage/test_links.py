"""Symbolic links below a run or sweep folder: nothing is read, written or removed through one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tiny import TINY_AGENT, TINY_RUN

from langevinrl import Model, cli
from langevinrl.analysis.records import find_runs
from langevinrl.callbacks import Checkpoint
from langevinrl.errors import UserError
from langevinrl.logs import video
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finite import BadNumberError, write_report
from langevinrl.runs.train import resume, train
from langevinrl.storage.files import open_append, open_regular, read_text, require_inside
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.grid import make_config, read_grid
from langevinrl.sweeps.job import run_job
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import Workers, find_slots

REFUSED = "is a link: a run or sweep uses only files inside its folder"
FILES = [
    "config.json", "versions.json", "metrics.jsonl", "evaluations.csv", "resumes.jsonl",
    "trackers.json", "bad_numbers.json", "curve.png", "video.mp4", "lock.1", "another.txt",
]  # fmt: skip


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run, tmp_path / "run")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_text("keep")
    return path


def replace_by_link(path: Path, target: Path) -> None:
    """Move a file or folder out, if there is one, and link to it."""
    if path.exists():
        target.unlink(missing_ok=True)
        path.rename(target)
    path.symlink_to(target)


def snapshot(path: Path) -> dict[str, bytes]:
    """Return the content of every file at or below a path."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return {str(file): file.read_bytes() for file in files}


def config_for(folder: Path) -> RunConfig:
    return RunConfig("toys:wide", out=str(folder), hyperparameters=TINY_AGENT, **TINY_RUN)


@pytest.mark.parametrize("name", [*FILES, "checkpoints", "models", "videos", "tensorboard"])
def test_resume_and_overwrite_refuse_a_link(folder: Path, outside: Path, name: str) -> None:
    replace_by_link(folder / name, outside)
    before = snapshot(outside)
    with pytest.raises(UserError, match=rf"{name}( {REFUSED}|: it is a symbolic link)"):
        resume(folder, 9)
    with pytest.raises(UserError, match=rf"{name} {REFUSED}"):
        train(config_for(folder), overwrite=True, quiet=True)
    assert snapshot(outside) == before and before


@pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.csv"])
def test_resume_does_not_wait_for_a_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(UserError, match=rf"{name} is no ordinary file"):
        resume(folder, 9)


@pytest.mark.parametrize("name", ["config.json", "checkpoints"])
def test_load_refuses_a_link(folder: Path, outside: Path, name: str) -> None:
    replace_by_link(folder / name, outside)
    with pytest.raises(UserError, match=rf"{name}.* is a (symbolic )?link"):
        Model.load(folder)


@pytest.mark.parametrize("name", ["state.safetensors", "metadata.json", "manifest.json"])
def test_linked_file_of_a_checkpoint_is_damage(folder: Path, tmp_path: Path, name: str) -> None:
    for checkpoint in (folder / "checkpoints").iterdir():
        replace_by_link(checkpoint / name, tmp_path / f"{checkpoint.name}-{name}")
    with pytest.raises(UserError, match=r"000000008.*damaged.*it is a symbolic link"):
        Model.load(folder)


def test_report_of_bad_numbers_replaces_a_link(folder: Path, outside: Path) -> None:
    (folder / "bad_numbers.json").symlink_to(outside)
    error = BadNumberError("a loss is not finite")
    error.report = {"seed": 0}
    assert "describes the batch" in write_report(RunFolder(folder), error)
    assert outside.read_text() == "keep" and not (folder / "bad_numbers.json").is_symlink()


def test_callback_does_not_save_models_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()

    class Link(Checkpoint):
        def on_start(self, run: Any) -> None:
            (tmp_path / "run" / "models").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UserError, match=f"models {REFUSED}"):
        train(config_for(tmp_path / "run"), callbacks=[Link(every=1)], quiet=True)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_video_is_not_written_through_a_link(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".video.partial.mp4").symlink_to(outside)
    (tmp_path / "video.mp4").symlink_to(outside)
    monkeypatch.setattr(video, "encode", lambda _, __, draft: draft.write_text("frames"))
    envs = SimpleNamespace(call=lambda _: [{}])
    film = video.film(lambda _: None, cast(Any, envs), [], tmp_path / "video.mp4")
    assert film.read_text() == "frames" and outside.read_text() == "keep"


@pytest.fixture
def sweep(tmp_path: Path) -> SweepFolder:
    config = make_config({"env": "Pendulum-v1", "agent": "lql", "iterations": 4}).resolved()
    return SweepFolder.write(tmp_path / "sweep", [config])


def job_of(sweep: SweepFolder) -> Job:
    (job,) = sweep.jobs.values()
    return job


@pytest.mark.parametrize("part", ["jobs", "state", "jobs/NAME", "state/ID", "slurm", "sweep.json"])
def test_sweep_refuses_a_link(sweep: SweepFolder, folder: Path, part: str) -> None:
    """As with jobs/NAME linked to a run of the user, whose replay was removed."""
    job, before = job_of(sweep), snapshot(folder)
    path = sweep.path / part.replace("NAME", job.folder.name).replace("ID", job.id)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(folder)
    for call in (lambda: SweepFolder(sweep.path), lambda: run_job(sweep.path, job.id)):
        with pytest.raises(UserError, match=REFUSED):
            call()
    with pytest.raises(SystemExit):
        cli.main(["sweep", str(sweep.path)])
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ["log.txt", "progress.json", "done.json", "error.1.txt"])
def test_state_of_a_job_is_not_used_through_a_link(
    sweep: SweepFolder, outside: Path, name: str
) -> None:
    """As with log.txt linked to the start file of a shell."""
    job = job_of(sweep)
    job.state.mkdir(parents=True)
    (job.state / name).symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"), Workers(find_slots(1)) as workers:
        workers.start(job, ["this"], job.state / name)
    assert not job.done and job.progress() == {}
    job.record_error("failed")
    assert job.last_error() == "failed"
    assert outside.read_text() == "keep"


def test_report_does_not_read_a_sweep_through_links(sweep: SweepFolder, folder: Path) -> None:
    job_of(sweep).folder.parent.mkdir()
    job_of(sweep).folder.symlink_to(folder)
    with pytest.raises(UserError, match=REFUSED):
        find_runs([sweep.path])


def test_file_functions_refuse_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "link").symlink_to(outside)
    for call in (open_regular, open_append):
        with pytest.raises(OSError, match="it is a symbolic link"):
            call(tmp_path / "link")
    with pytest.raises(UserError, match="it is a symbolic link"):
        read_text(tmp_path / "link", "it")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "inner").symlink_to(tmp_path)
    (tmp_path / "start").symlink_to(tmp_path / "real")
    require_inside(tmp_path / "start", tmp_path / "start" / "new" / "file")  # the root may be one
    with pytest.raises(UserError, match=f"inner {REFUSED}"):
        require_inside(tmp_path / "start", tmp_path / "start" / "inner" / "file")


def test_file_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text('{"base": {"env": "Pendulum-v1", "iterations": 4}}')
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert read_grid(tmp_path / "link.json").base["env"] == "Pendulum-v1"


def test_control_characters_in_messages_are_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sweep: SweepFolder
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["evaluate", str(tmp_path / "a\x1b[31m\x07b")])
    assert "a\\x1b[31m\\x07b is not a run folder" in capsys.readouterr().err
    job_of(sweep).record_error("\x1b]0;title\x07")
    assert job_of(sweep).last_error() == "\\x1b]0;title\\x07"


@pytest.mark.parametrize(("verb", "name"), [("export", "policy.npz"), ("plot", "curve.png")])
def test_export_and_plot_do_not_write_through_links(
    verb: str, name: str, folder: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(SystemExit):
        cli.main([verb, str(folder)])
    assert "is a link" in capsys.readouterr().err and outside.read_text() == "keep"
