"""Claims, held by real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from langevinrl.sweeps import claims

# Waits for a common moment, then says whether it got the claim, and holds it until its input ends.
RACER = """
import sys, time
from pathlib import Path
from langevinrl.sweeps import claims
time.sleep(max(0, float(sys.argv[2]) - time.time()))
claim = claims.take(Path(sys.argv[1]))
print("won" if claim else "lost", flush=True)
sys.stdin.read()
"""


def racer(place: Path, start: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RACER, str(place), str(start)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def word(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.communicate()


def test_of_many_that_race_one_wins(tmp_path: Path) -> None:
    start = time.time() + 2.5
    racers = [racer(tmp_path, start) for _ in range(6)]
    words = [word(process) for process in racers]
    held = claims.is_held(tmp_path)
    end(*racers)
    assert sorted(words) == ["lost"] * 5 + ["won"]
    assert held and not claims.is_held(tmp_path)


def test_a_killed_holder_is_succeeded_at_once_and_by_one(tmp_path: Path) -> None:
    first = racer(tmp_path)
    assert word(first) == "won" and claims.take(tmp_path) is None
    first.send_signal(signal.SIGKILL)
    end(first)
    second = claims.take(tmp_path)
    assert second is not None and second.path.name == "claim.2"
    assert claims.take(tmp_path) is None
    second.release()
    assert not claims.is_held(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["claim.2"]


def test_a_claim_given_back_is_not_held_by_two(tmp_path: Path, monkeypatch: Any) -> None:
    """Who looked before others held the job and gave it back comes too late with its number."""
    first = claims.take(tmp_path)
    assert first is not None
    first.release()
    seen = claims._claims(tmp_path)
    for _ in range(2):
        holder = claims.take(tmp_path)
        assert holder is not None
        holder.release()
    last = claims.take(tmp_path)
    assert last is not None and last.path.name == "claim.4"
    looks = iter([seen])
    real = claims._claims
    monkeypatch.setattr(claims, "_claims", lambda place: next(looks, None) or real(place))
    assert claims.take(tmp_path) is None  # its claim.2 was free again, and is below claim.4
    last.beat()


def test_a_claim_of_another_machine_dies_by_its_age(tmp_path: Path) -> None:
    path = tmp_path / "claim.1"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "start": "5"}))
    assert claims.take(tmp_path, expiry=10) is None
    os.utime(path, (time.time() - 11,) * 2)
    assert not claims.is_held(tmp_path, expiry=10)
    assert claims.take(tmp_path, expiry=10) is not None and not path.exists()


def test_a_holder_that_slept_too_long_learns_that_its_job_is_gone(tmp_path: Path) -> None:
    sleeper = claims.take(tmp_path)
    assert sleeper is not None
    sleeper.beat()
    os.utime(sleeper.path, (time.time() - 999,) * 2)
    successor = claims.take(tmp_path)
    assert successor is not None
    successor.release()
    with pytest.raises(claims.LostClaimError):
        sleeper.beat()


def test_a_half_written_claim_counts_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / "claim.1"
    path.write_text('{"host": ')
    assert claims.is_held(tmp_path)
    os.utime(path, (time.time() - 999,) * 2)
    assert not claims.is_held(tmp_path)
