"""Memory of a replay buffer with a million rows, and time to save it, at two sizes.

python experiments/replay_memory.py results/reliability/replay.json

The baseline is the simple buffer of the tests, which stores next observations as a column.  Both
are timed in turns, since the machine may be busy.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "replay"))
from plain_replay import PlainReplay  # type: ignore[import-not-found]  # of the tests

from langevinrl.replay.buffer import Replay
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Spec, Transition

ROWS, NUM_ENVS, BATCH = 1_000_000, 5, 256
# Sizes of observation and action, and steps of an episode; Humanoid's of a half-trained policy.
TASKS = {"HalfCheetah-v4": (17, 6, 1000), "Humanoid-v4": (376, 17, 100)}


def transitions(obs_dim: int, act_dim: int, length: int, steps: int) -> Iterator[Transition]:
    """Yield steps of environments whose episodes end at random, once in `length`."""
    random, one = np.random.default_rng(0), np.ones((1, NUM_ENVS), np.float32)
    action = np.ones((1, NUM_ENVS, act_dim), np.float32)
    now = random.normal(size=(1, NUM_ENVS, obs_dim)).astype(np.float32)
    for _ in range(steps):
        next_obs = now + np.float32(1e-3)
        yield Transition(now, action, one, one, next_obs)
        ended = random.random((1, NUM_ENVS, 1)) < 1 / length
        now = np.where(ended, now[..., ::-1] + 1, next_obs)


def make(kind: str, obs_dim: int, act_dim: int, rows: int) -> Any:
    spec = Spec(obs_dim, act_dim)
    if kind == "plain":
        return PlainReplay(spec, rows, [0])
    return Replay(spec, rows, [0], num_envs=NUM_ENVS)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(kind: str, obs_dim: int, act_dim: int, length: int) -> float:
    """Fill a buffer and return the gigabytes it took; run in its own process."""
    before, replay = resident(), make(kind, obs_dim, act_dim, ROWS)
    for transition in transitions(obs_dim, act_dim, length, ROWS // NUM_ENVS):
        replay.add(transition)
    return round((resident() - before) / 1e9, 3)


def turns(obs_dim: int, act_dim: int, length: int, rows: int = 300_000) -> dict[str, float]:
    """Return median microseconds of sampling a batch and of adding a step, in turns."""
    both = {kind: make(kind, obs_dim, act_dim, rows) for kind in ("plain", "shared")}
    for transition in transitions(obs_dim, act_dim, length, rows // NUM_ENVS):
        for replay in both.values():
            replay.add(transition)
    took: dict[str, list[float]] = {}
    for transition in transitions(obs_dim, act_dim, length, 600):
        for kind, replay in both.items():
            start = time.perf_counter()
            replay.add(transition)
            middle = time.perf_counter()
            replay.sample(BATCH)
            took.setdefault(f"{kind} add us", []).append(middle - start)
            took.setdefault(f"{kind} sample us", []).append(time.perf_counter() - middle)
    return {name: round(1e6 * float(np.median(times)), 1) for name, times in took.items()}


def share_of_saving(env: str, length: int) -> dict[str, float]:
    """Return the share of saving in a run's time, at default settings with a full buffer."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        config = RunConfig(env, warmup=1280, out=place).resolved()
        with Run(config) as run:
            run.until(5)
            fill(run.replay, length)
            iteration, save, processor = [], [], []
            for _ in range(3):
                start = time.perf_counter()
                run.until(run.iteration + 40)
                iteration.append((time.perf_counter() - start) / 40)
                start, used = time.perf_counter(), time.process_time()
                checkpoint.save(RunFolder(place), run.iteration, run.checkpoint({}), keep=2)
                save.append(time.perf_counter() - start)
                processor.append(time.process_time() - used)
            size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    between = config.checkpoint_every * float(np.median(iteration))
    return {
        "iteration ms": round(1e3 * float(np.median(iteration)), 1),
        "save s": round(float(np.median(save)), 2),
        "save processor s": round(float(np.median(processor)), 2),
        "share of time": round(float(np.median(save)) / between, 4),
        "checkpoint GB": round(size / 2e9, 3),  # two are kept
    }


def fill(replay: Replay, length: int) -> None:
    """Fill all rows with random numbers."""
    random = np.random.default_rng(0)
    for ring in replay.rings.values():
        rest = ring[:, replay.size :]
        rest[...] = random.random(rest.shape, np.float32)
    ended = np.arange(replay.size + NUM_ENVS, replay.capacity - NUM_ENVS, length)
    final = random.random((len(ended), replay.newest.shape[-1]), np.float32)
    replay.final_obs.put(np.zeros_like(ended), ended, final)
    replay.size = replay.capacity


def main(target: Path) -> None:
    found: dict[str, Any] = {}
    for env, sizes in TASKS.items():
        row: dict[str, Any] = {"rows": ROWS}
        for kind in ("plain", "shared"):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                row[f"{kind} GB"] = pool.apply(memory, (kind, *sizes))
        found[env] = row | turns(*sizes) | share_of_saving(env, sizes[-1])
        print(env, found[env], flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
