"""Processes of environments: scripts that start them, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

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


def test_a_script_without_a_guard_is_told_in_one_sentence(tmp_path: Path) -> None:
    for script in (IMPORT + START, f"{IMPORT}def go():\n    {START}\nif True:\n    go()\n"):
        done = run(script, tmp_path)
        last = done.stderr.strip().splitlines()[-1]
        assert "langevinrl.errors.UserError: script.py, line" in last
        assert 'if __name__ == "__main__":' in last
        assert done.stderr.count("Traceback") == 1 and "bootstrapping" not in done.stderr


def test_a_script_with_a_guard_runs_and_ends_though_nobody_closes(tmp_path: Path) -> None:
    guarded = 'if __name__ == "__main__":\n    ' + START + "    print(envs.reset().shape)\n"
    done = run(IMPORT + guarded, tmp_path)
    assert done.returncode == 0 and done.stdout == "(1, 2, 3)\n", done.stderr


def test_a_worker_that_died_does_not_hold_up_the_end() -> None:
    envs = VectorEnv("Pendulum-v1", [0], 2, asynchronous=True)
    assert isinstance(envs.vector, Workers)
    envs.reset()
    first, second = envs.vector.processes
    os.kill(first.pid or 0, signal.SIGKILL)
    began = time.monotonic()
    envs.close()
    assert time.monotonic() - began < 10
    assert not second.is_alive()


def test_a_step_without_its_answer_does_not_hold_up_the_end() -> None:
    envs = VectorEnv("Pendulum-v1", [0], 2, asynchronous=True)
    assert isinstance(envs.vector, Workers)
    envs.reset()
    envs.vector.pipes[0].send(("step", np.zeros(1, np.float32)))
    envs.close(terminate=True)
    assert not any(process.is_alive() for process in envs.vector.processes)
