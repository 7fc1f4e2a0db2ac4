"""Two processes and one folder: one trains, the other is refused, and the run is not affected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langevinrl.storage.folder import RunFolder

ROOT = Path(__file__).parent.parent.parent
SMALL = (
    "--iterations 60 --num-envs 1 --warmup 20 --batch-size 8 --capacity 100 --eval-every 30 "
    "--eval-episodes 1 --log-every 5 --checkpoint-every 10 --hidden 8 --num-steps 2"
).split()


def start(*words: str) -> subprocess.Popen[str]:
    """A process of the command line."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-m", "langevinrl", *words], env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def train(out: Path, seed: int = 0) -> subprocess.Popen[str]:
    words = ["--env", "Pendulum-v1", "--out", str(out), "--seed", str(seed), *SMALL]
    return start("train", "lql", *words)


def begun(out: Path) -> Path:
    """A run that was killed after its first checkpoint."""
    process = train(out)
    deadline = time.monotonic() + 120
    while not RunFolder(out).saved_checkpoints() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert RunFolder(out).saved_iteration() < 60
    return out


def ended(processes: list[subprocess.Popen[str]]) -> list[int]:
    """Return exit codes in order; a refused process gave one sentence."""
    codes = []
    for process in processes:
        _, said = process.communicate(timeout=240)
        codes.append(process.returncode)
        assert "Traceback" not in said, said
        if process.returncode:
            assert process.returncode == 2 and len(said.strip().splitlines()) == 1, said
            assert "another process trains in" in said or "already holds a run" in said
    return codes


def assert_whole(folder: Path) -> int:
    """Logs without a gap or a line twice, of one seed, which is the configuration's; that seed."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iterations"] for row in rows] == list(range(5, 61, 5))
    evaluations = RunFolder(folder).read_evaluations()
    assert [row["iterations"] for row in evaluations] == ["30", "60"]
    seed = json.loads((folder / "config.json").read_text())["seed"]
    assert {row["seed"] for row in rows} == {int(row["seed"]) for row in evaluations} == {seed}
    assert RunFolder(folder).saved_iteration() == 60 and not list(folder.glob("lock.*"))
    return int(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)], ids=str)
def test_train_and_train(tmp_path: Path, seeds: tuple[int, int]) -> None:
    codes = ended([train(tmp_path / "run", seed) for seed in seeds])
    assert sorted(codes) == [0, 2]
    assert assert_whole(tmp_path / "run") == seeds[codes.index(0)]


@pytest.mark.slow
def test_train_and_resume(tmp_path: Path) -> None:
    first = train(tmp_path / "run")
    while not (tmp_path / "run" / "config.json").exists():
        time.sleep(0.02)
    second = start("resume", str(tmp_path / "run"))
    codes = ended([first, second])
    assert codes[0] == 0  # the second came too late, or after its end
    assert_whole(tmp_path / "run")


@pytest.mark.slow
def test_resume_and_resume(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    codes = ended([start("resume", str(folder)), start("resume", str(folder))])
    assert 0 in codes
    assert_whole(folder)


@pytest.mark.slow
def test_resume_and_overwrite_with_another_seed(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    first = start("resume", str(folder))
    words = ["--env", "Pendulum-v1", "--out", str(folder), "--seed", "7", "--overwrite", *SMALL]
    second = start("train", "lql", *words)
    codes = ended([first, second])
    assert 0 in codes
    seed = assert_whole(folder)
    assert codes[(0, 7).index(seed)] == 0
