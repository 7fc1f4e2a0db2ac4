"""SIGKILL at random moments of a run that saves all the time: resumed, it equals an unbroken one.

Three kills of one small run, eight in the slow tests; `make soak` kills a hundred times, over
agents, seeds and processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from same_end import assert_same_end

# One process loads everything and forks each life of the run, so that a life costs little more
# than its steps.  JAX has not begun to work when it forks, and has no threads yet.
SCRIPT = """
import os, random, signal, sys, threading
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.config import RunConfig
from langevinrl.storage.folder import RunFolder
from langevinrl.runs.train import resume, train

KILLS = int(sys.argv[1])
PLAN = dict(
    agent="lql", hyperparameters={"hidden": (4,)}, iterations=50 * KILLS, warmup=40, batch_size=8,
    capacity=150, num_envs=2, seeds=1, eval_every=50, eval_episodes=1, checkpoint_every=2,
    log_every=5,
)

class Doom(Callback):
    def __init__(self, seconds):
        self.seconds, self.timer = seconds, None

    def on_step(self, run, info):
        if self.timer is None:
            self.timer = threading.Timer(self.seconds, os.kill, [os.getpid(), signal.SIGKILL])
            self.timer.daemon = True
            self.timer.start()

def live(folder, callbacks):
    "One life of the run; whether it came to its end."
    pid = os.fork()
    if not pid:
        try:
            if RunFolder(folder).config.exists():
                resume(folder, callbacks=callbacks, quiet=True)
            else:
                train(RunConfig("toys:timed", out=folder, **PLAN), callbacks=callbacks, quiet=True)
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == 0

draw, kills = random.Random(3), 0
assert live("whole", [])
while kills < KILLS and not live("cut", [Doom(draw.uniform(0.0, 0.15))]):
    kills += 1
assert live("cut", [])
print("kills", kills)
"""


@pytest.mark.parametrize("kills", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_run_killed_repeatedly_ends_like_an_uninterrupted_one(tmp_path: Path, kills: int) -> None:
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(kills)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) == kills
    assert_same_end(tmp_path / "whole", tmp_path / "cut")
