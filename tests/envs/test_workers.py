"""Tests of worker processes: scripts that start them, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import toys

from langevinrl.envs import serial, workers
from langevinrl.envs.vector import VectorEnv
from langevinrl.envs.workers import Workers

START = 'envs = VectorEnv("Pendulum-v1", [0], 2, asynchronous=True)\n'
IMPORT = "from langevinrl.envs.vector import VectorEnv\n"


def run(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    path = place / "script.py"
    path.write_text(script)
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, cwd=place
    )


def test_a_script_needs_a_main_guard_but_not_close(tmp_path: Path) -> None:
    done = run(IMPORT + START, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0 and "EnvError: 'Pendulum-v1': environment 0 of seed 0" in last
    assert 'belongs under `if __name__ == "__main__":`' in last
    guarded = 'if __name__ == "__main__":\n    ' + START + "    print(envs.reset().shape)\n"
    done = run(IMPORT + guarded, tmp_path)
    assert done.returncode == 0 and done.stdout == "(1, 2, 3)\n", done.stderr


HANGING = """
import os, time
import numpy as np
import toys
from langevinrl.envs import workers
from langevinrl.envs.vector import VectorEnv

workers.CLOSE_SECONDS = 0.5  # in the worker processes, which import this file

class Hanging(toys.Launching):
    def step(self, action):
        time.sleep(600)

if __name__ == "__main__":
    envs = VectorEnv(Hanging, [0], 2, asynchronous=True)
    envs.reset()
    pids = [process.pid for process in envs.vector.processes]
    print(*pids, *envs.call("started"), flush=True)
    envs.step(np.zeros((1, 2, 1), np.float32))
"""


def test_hanging_workers_end_after_the_run_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(HANGING)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True, env=env)
    assert run.stdout is not None
    pids = run.stdout.readline().split()
    time.sleep(0.2)  # until they hang
    run.kill()
    run.communicate()
    end = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(pids) == 4 and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("state", ["dead", "busy"])
def test_close_does_not_wait_for_a_dead_or_busy_worker(state: str) -> None:
    envs = VectorEnv("Pendulum-v1", [0], 2, asynchronous=True)
    assert isinstance(envs.vector, Workers)
    envs.reset()
    if state == "dead":
        os.kill(envs.vector.processes[0].pid or 0, signal.SIGKILL)
    else:
        envs.vector.pipes[0].send(("step", np.zeros(1, np.float32)))
    began = time.monotonic()
    envs.close(terminate=state == "busy")
    assert time.monotonic() - began < 10
    assert not any(process.is_alive() for process in envs.vector.processes)


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("terminate", [False, True])
def test_processes_that_an_environment_started_end_with_it(terminate: bool) -> None:
    envs = VectorEnv(toys.Launching, [0], 2, asynchronous=True)
    started = envs.call("started")
    assert all(map(is_running, started))
    envs.close(terminate)
    end = time.monotonic() + 5
    while any(map(is_running, started)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, started))


class BadClose(toys.SavedClock):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def close(self) -> None:
        if self.fault == "hangs":
            time.sleep(60)
        raise RuntimeError("already closed")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("fault", "words"),
    [("raises", "raised RuntimeError: already closed in close"), ("hangs", "within 0.5 s")],
)
def test_a_close_that_fails_or_hangs_is_one_warning(
    fault: str, words: str, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial, "CLOSE_SECONDS", 0.5)
    monkeypatch.setattr(workers, "CLOSE_SECONDS", 0.5)
    num_envs = 2 if asynchronous else 12
    envs = VectorEnv(partial(BadClose, fault), [7], num_envs, asynchronous=asynchronous)
    envs.reset()
    began = time.monotonic()
    with pytest.warns(UserWarning, match=f"environment 0 of seed 7 .*{words}") as caught:
        envs.close()
    assert len(caught) == 1 and time.monotonic() - began < 5
