"""Runs killed, stopped and loaded for a long time: the tables under results/reliability.

From the root of the repository:

python experiments/soak.py                      # everything, more than half an hour (make soak)
python experiments/soak.py kills --kills 20     # SIGKILL at random moments
python experiments/soak.py stops                # each signal, sent to a whole process group
python experiments/soak.py load --seconds 60    # many environments, many processes
python experiments/soak.py reader --seconds 60  # damaged files for the checkpoint reader

A kill ends one process of a run at a random moment: while it imports, compiles, steps, evaluates or
saves.  The run is resumed and killed again, and at its end must equal an uninterrupted run: every
array of the checkpoint and every line of the logs, byte by byte.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

TESTS = Path(__file__).parent.parent / "tests"  # toys.py there defines environments
# With networks this small QSM diverges, and the others do with larger rewards.
AGENTS = ("nclql", "lql", "sac", "dipo", "qvpo", "dacer", "mfp", "sdac", "dpmd")
SMALL = "--hidden 8 8 --reward-scale 0.05 --warmup 60 --batch-size 8 --capacity 200 "
SMALL += "--num-envs 2 --eval-episodes 1"
RUN = "--iterations 300 --eval-every 100 --checkpoint-every 7 --log-every 5"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
MARK = "LANGEVINRL_SOAK"  # environment variable that all processes of a run inherit


@dataclass(frozen=True)
class Soak:
    """Parts of the soak test and their length."""

    parts: tyro.conf.Positional[tuple[str, ...]] = ("kills", "stops", "load", "reader")
    kills: int = 100  # in all
    kills_per_run: int = 5
    first: int = 0  # number of the first run to kill, to continue an earlier soak
    seconds: float = 600.0  # of each load, and of the reader
    seed: int = 0  # of the random moments
    out: Path = Path("results/reliability")


def start(words: str, mark: str) -> subprocess.Popen[bytes]:
    """Start a run in its own session, so that a signal can be sent to all its processes."""
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(TESTS)])
    env = {"XLA_FLAGS": flags, **os.environ, MARK: mark, "PYTHONPATH": path}
    command = [sys.executable, "-m", "langevinrl", *words.split()]
    with open(mark, "ab") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def run_for(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Wait until a process has used `seconds` of CPU time or ended; return the CPU time."""
    worked = 0.0
    while process.poll() is None and worked < seconds:
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        worked = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        time.sleep(0.01)
    return worked


def left_behind(mark: str, seconds: float = 15.0) -> int:
    """Count processes of a run that are alive `seconds` after it ended."""
    end = time.monotonic() + seconds
    while processes_of(mark) and time.monotonic() < end:
        time.sleep(0.2)
    return len(processes_of(mark))


def processes_of(mark: str) -> list[Path]:
    """List the folders in /proc of all processes of a run."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(folder)
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


def shared_memory(mark: str) -> int:
    """Count the mappings of /dev/shm that the processes of a run hold."""
    held = 0
    for folder in processes_of(mark):
        try:
            held += (folder / "maps").read_text().count("/dev/shm/")
        except OSError:
            continue
    return held


def wait_for(path: Path, process: subprocess.Popen[bytes], seconds: float = 300.0) -> None:
    """Wait until a file exists and is not empty."""
    end = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size):
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{path} was never written; the run exited with {process.poll()}")
        time.sleep(0.05)


def contents(run: Path) -> dict[str, Any]:
    """Return all contents of a run folder except times and paths."""
    checkpoint = max(path for path in (run / "checkpoints").iterdir() if path.name.isdigit())
    found: dict[str, Any] = {p.name: p.read_bytes() for p in checkpoint.glob("*.safetensors")}
    metadata = json.loads((checkpoint / "metadata.json").read_text())
    for name in ("wall_seconds", "logs", "manifest", "files", "config_digest"):
        metadata.pop(name, None)  # these depend on wall-clock times
    with (run / "evaluations.csv").open() as file:
        rows = [{k: v for k, v in r.items() if k != "wall_seconds"} for r in csv.DictReader(file)]
    return found | {"metadata": metadata, "evaluations": rows,
                    "metrics": (run / "metrics.jsonl").read_text()}  # fmt: skip


def kill_runs(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """Kill runs of every agent in turn, and compare them with uninterrupted ones."""
    draw, done = random.Random(config.seed), 0
    for number in itertools.count(config.first):
        if done >= config.kills:
            return
        kills = min(config.kills_per_run, config.kills - done)
        row = kill_run(AGENTS[number % len(AGENTS)], number, kills, draw, place)
        done += row["kills"]
        yield row


def kill_run(
    agent: str, number: int, kills: int, draw: random.Random, place: Path
) -> dict[str, Any]:
    """Kill a run `kills` times and resume it to its end."""
    seeds, apart = 1 + number % 2, number % 3 == 2
    env = ("Hopper-v4", "Pendulum-v1", "toys:timed")[number % 3]
    words = f"train {agent} --env {env} --seed {number} --seeds {seeds} {SMALL} {RUN}"
    words += " --async-envs" if apart else ""
    whole, cut, mark = (str(place / f"{kind}-{number}") for kind in ("whole", "cut", "log"))
    process = start(f"{words} --out {whole}", mark)
    life = run_for(process, float("inf"))
    assert process.wait() == 0, Path(mark).read_text()
    left = killed = shared = 0
    while True:
        again = (Path(cut) / "config.json").exists()
        process = start(f"resume {cut}" if again else f"{words} --out {cut}", mark)
        # The first run compiled; the others use its cached programs and are shorter.
        run_for(process, float("inf") if killed == kills else draw.uniform(0.02, 0.4) * life)
        if process.poll() is not None:
            break
        shared += shared_memory(mark)
        process.kill()
        process.wait()
        killed += 1
        left += left_behind(mark)
    code = process.wait()
    equal = code == 0 and contents(Path(whole)) == contents(Path(cut))
    row = {
        "agent": agent, "env": env, "seeds": seeds, "async": apart, "kills": killed,
        "byte_equal": equal, "processes_left": left,
        "shared_memory": shared,
    }  # fmt: skip
    for path in (whole, cut):
        shutil.rmtree(path)
    return row


def stop_runs(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """Send each signal to a process group; record exit code, checkpoint and left processes."""
    for number in SIGNALS:
        for apart in (False, True):
            folder = place / f"stop-{number}-{apart}"
            mark = f"{folder}.log"
            words = f"train lql --env Pendulum-v1 {SMALL} --iterations 100000 --eval-every 100000"
            words += f" --log-every 20 --out {folder}" + (" --async-envs" if apart else "")
            process = start(words, mark)
            wait_for(folder / "metrics.jsonl", process)
            began, shared = time.monotonic(), shared_memory(mark)
            os.killpg(process.pid, number)
            code = process.wait(120)
            seconds = time.monotonic() - began
            saved = sorted(p.name for p in (folder / "checkpoints").iterdir() if p.name.isdigit())
            yield {
                "signal": number.name, "async": apart, "exit_code": code,
                "expected": 128 + number, "saved_iteration": int(saved[-1]) if saved else None,
                "seconds_to_stop": round(seconds, 2), "processes_left": left_behind(mark),
                "shared_memory": shared,
            }  # fmt: skip


def usage(mark: str) -> dict[str, int]:
    """Return memory, threads and open files of all processes of a run together."""
    found = {"memory_kb": 0, "threads": 0, "files": 0, "processes": 0}
    for folder in processes_of(mark):
        try:
            lines = (folder / "status").read_text().splitlines()
            found["files"] += len(list((folder / "fd").iterdir()))
        except OSError:
            continue
        status = dict(line.split(":", 1) for line in lines)
        found["memory_kb"] += int(status.get("VmRSS", "0").split()[0])
        found["threads"] += int(status["Threads"])
        found["processes"] += 1
    return found


LOADS = {
    "64 environments x 16 seeds": "--num-envs 64 --seeds 16 --capacity 2048 --warmup 2048",
    "32 processes": "--num-envs 32 --async-envs --capacity 2048 --warmup 2048",
}


def load_runs(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """Run two heavy loads, whose use of the machine must not grow."""
    for number, (name, words) in enumerate(LOADS.items()):
        folder = place / f"load-{number}"
        mark = f"{folder}.log"
        process = start(
            f"train lql --env Pendulum-v1 --hidden 16 16 --batch-size 32 {words} --iterations "
            f"10000000 --eval-every 50 --eval-episodes 1 --checkpoint-every 50 --log-every 50 "
            f"--out {folder}",
            mark,
        )
        wait_for(folder / "evaluations.csv", process, 900)
        wait_for_row(folder / "evaluations.csv", process)  # everything is compiled by then
        samples, end = [usage(mark)], time.monotonic() + config.seconds
        while time.monotonic() < end and process.poll() is None:
            time.sleep(2.0)
            samples.append(usage(mark))
        process.terminate()
        code = process.wait(300)
        ended = {"exit_code": code, "processes_left": left_behind(mark)}
        yield growth(name, config.seconds, samples) | ended


def wait_for_row(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until an evaluation has been logged, after the header."""
    while len(path.read_text().splitlines()) < 2 and process.poll() is None:
        time.sleep(0.5)


def growth(name: str, seconds: float, samples: list[dict[str, int]]) -> dict[str, Any]:
    """Return the maxima of the first and of the last third of a load."""
    third = max(1, len(samples) // 3)
    row: dict[str, Any] = {"load": name, "seconds": seconds, "samples": len(samples)}
    for key in ("memory_kb", "threads", "files", "processes"):
        row[f"{key}_first"] = max(sample[key] for sample in samples[:third])
        row[f"{key}_last"] = max(sample[key] for sample in samples[-third:])
    return row


def feed_reader(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """Give damaged files to the checkpoint reader; count them and its failures."""
    words = [str(TESTS / "storage" / "fuzz_reader.py"), str(config.seconds), str(config.seed)]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    yield json.loads(done.stdout.splitlines()[-1])


def write(rows: Iterable[dict[str, Any]], seed: int, path: Path) -> None:
    """Write rows as they come, so that they are kept if the soak is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            row = {"soak_seed": seed} | row
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(row, flush=True)


def main(config: Soak) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup runs would ignore it
    parts = {"kills": kill_runs, "stops": stop_runs, "load": load_runs, "reader": feed_reader}
    if unknown := set(config.parts) - set(parts):
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(parts)}")
    with tempfile.TemporaryDirectory(prefix="langevinrl-soak-") as place:
        os.environ.setdefault("LANGEVINRL_CACHE", f"{place}/programs")
        for name in config.parts:
            write(parts[name](config, Path(place)), config.seed, config.out / f"{name}.csv")


if __name__ == "__main__":
    main(tyro.cli(Soak))
