"""Whole sweeps on this machine, in real processes: finished, cut, killed, shared, failing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sweeping import TINY, assert_same, results, run_in_this_process, tiny_configs, until

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.grid import make_config
from langevinrl.sweeps.local import _LocalSweep
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.slots import Workers
from langevinrl.sweeps.start import go_on, sweep

Sweeper = subprocess.Popen[str]
LONG = {"iterations": 400, "eval_every": 400, "checkpoint_every": 40}


def start(configs: list[RunConfig], out: Path, *words: str) -> Sweeper:
    """The command line at work on a sweep's folder, in a process of its own."""
    SweepFolder.write(out, configs)
    command = [sys.executable, "-m", "langevinrl", "sweep", str(out), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of two runs."""
    return run_in_this_process(tiny_configs(), tmp_path_factory.mktemp("sweep") / "whole")


def test_finished_jobs_have_no_replay_and_are_not_run_again(whole: Path) -> None:
    folder = SweepFolder(whole)
    assert len(folder.jobs) == 2
    for id_, job in folder.jobs.items():
        assert job.folder.name.endswith(id_) and job.status() == "done"
        assert RunFolder(job.folder).kind() == "model" and not job.errors
        assert json.loads((job.state / "done.json").read_text())["iteration"] == 12
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("evaluations.csv")}
    sweep(tiny_configs(), whole, seeds_per_process="one", quiet=True)
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("evaluations.csv")}


def test_seeds_in_one_process_give_the_same_runs(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "together"
    sweep(tiny_configs(), out, seeds_per_process="all")
    assert len(SweepFolder(out).jobs) == 1
    assert "2 runs of 12 iterations in 1 job" in capsys.readouterr().out
    apart = {tuple(row[1:]) for rows, _ in results(whole).values() for row in rows}
    together = {tuple(row[1:]) for rows, _ in results(out).values() for row in rows}
    assert {row[1:5] for row in apart} == {row[1:5] for row in together}


def test_sweep_stopped_by_ctrl_c_and_then_killed_continues_exactly(tmp_path: Path) -> None:
    configs, cut = tiny_configs(1, **LONG), tmp_path / "cut"
    process = start(configs, cut)
    (job,) = SweepFolder(cut).jobs.values()
    run = RunFolder(job.folder)
    until(lambda: run.metrics.exists() and run.metrics.stat().st_size)
    process.send_signal(signal.SIGINT)
    words, _ = process.communicate(timeout=120)
    assert process.returncode == 130 and f"langevinrl sweep {cut}" in words
    stopped = run.saved_iteration()
    assert stopped > 0 and job.status() == "waiting"
    process = start(configs, cut)
    until(lambda: run.saved_iteration() > stopped)
    process.send_signal(signal.SIGKILL)  # its job saves and ends
    process.communicate()
    killed = run.saved_iteration()
    again = start(configs, cut)
    out, _ = again.communicate(timeout=240)
    assert again.returncode == 0, out
    first, second = (json.loads(line)["iteration"] for line in run.resumes.read_text().splitlines())
    assert first == stopped and second >= killed > stopped
    assert_same(cut, run_in_this_process(configs, tmp_path / "calm"))


def test_two_sweeps_of_one_folder_share_its_jobs(tmp_path: Path, whole: Path) -> None:
    processes = [start(tiny_configs(), tmp_path / "shared", "--workers", "1") for _ in range(2)]
    for process in processes:
        out, _ = process.communicate(timeout=240)
        assert process.returncode == 0, out
    assert not list((tmp_path / "shared").rglob("resumes.jsonl"))  # nobody took up another's
    assert_same(tmp_path / "shared", whole)


def test_failing_job_is_retried_and_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
    bad = make_config({**TINY, "env": "toys:breaking", "warmup": 100})  # fails in warm-up
    good = make_config({**TINY, "iterations": 2, "eval_every": 2})
    out = sweep([bad, good], tmp_path / "sweep", retries=1)
    job, other = out.jobs.values()
    assert len(job.errors) == 2 and "the wheel came off" in job.last_error()
    assert "Traceback" in job.errors[0].read_text() and job.status() == "failed"
    assert other.done
    assert "the wheel came off" in capsys.readouterr().out


def test_killed_job_is_reported_with_its_signal(tmp_path: Path) -> None:
    config = make_config({**TINY, **LONG, "iterations": 100_000})
    folder = SweepFolder.write(tmp_path / "sweep", [config.resolved()])
    (job,) = folder.jobs.values()
    process = start([config.resolved()], folder.path, "--retries", "0")
    until((job.folder / "lock.1").exists)
    os.kill(json.loads((job.folder / "lock.1").read_text())["pid"], signal.SIGKILL)
    words, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "killed (signal 9)" in words


@pytest.mark.parametrize("code", [0, 3, 130])
def test_job_is_done_only_by_its_done_file(tmp_path: Path, code: int) -> None:
    """User code may end the process with any exit code, 0 included."""
    folder = SweepFolder.write(tmp_path / "sweep", [make_config(TINY).resolved()])
    (job,) = folder.jobs.values()
    local = _LocalSweep(folder, [], Workers([]), retries=1, keep_replay=False)
    for tries in (1, 2):
        local._handle_end(job, code)
        assert len(job.errors) == tries and list(local.waiting) == [job]
        assert job.last_error() == f"its process exited with {code} before the run was done"
    job.write("done.json", "{}")
    local._handle_end(job, code)
    assert len(job.errors) == 2 and job.status() == "done"


def test_unknown_environment_or_backend_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown environment 'Pendulm-v1'; near: Pendulum-v1"):
        sweep([make_config({**TINY, "env": "Pendulm-v1"})], tmp_path / "sweep")
    with pytest.raises(UserError, match="unknown backend 'lokal'; did you mean local"):
        sweep([make_config(TINY)], tmp_path / "other", backend="lokal")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [("capacity", "x"), ("warmup", None), ("num_envs", []), ("env_kwargs", -1), ("seeds", {})],
)
def test_odd_fields_of_a_received_sweep_give_one_sentence(
    tmp_path: Path, field: str, value: object
) -> None:
    path = SweepFolder.write(tmp_path / "sweep", tiny_configs(1)).path
    table = json.loads((path / "sweep.json").read_text())
    table["jobs"][0]["config"][field] = value
    (path / "sweep.json").write_text(json.dumps(table))
    with pytest.raises(UserError, match=field):
        go_on(SweepFolder(path), quiet=True)


def test_concurrent_commands_add_all_their_jobs(tmp_path: Path) -> None:
    configs = tiny_configs(8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda config: SweepFolder.write(tmp_path / "sweep", [config]), configs))
    assert len(SweepFolder(tmp_path / "sweep").jobs) == len(configs) == 8


def test_folder_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="neither empty nor a sweep"):
        sweep([make_config(TINY)], tmp_path)
    with pytest.raises(UserError, match="neither empty nor a sweep"):
        sweep([make_config(TINY)], tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
