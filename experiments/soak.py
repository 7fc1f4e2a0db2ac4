"""Runs killed, stopped and loaded for as long as it takes: the tables under results/reliability.

From the root of the repository:

python experiments/soak.py                      # all of it, more than half an hour (make soak)
python experiments/soak.py kills --kills 20     # SIGKILL at random moments
python experiments/soak.py stops                # each signal, to a whole group of processes
python experiments/soak.py load --seconds 60    # many environments, many processes
python experiments/soak.py reader --seconds 60  # changed files for the reader of checkpoints

A kill ends one process of a run at a random moment of its life: while it imports, compiles, steps,
evaluates or saves.  The run is resumed, killed again, and in the end has to equal one that was left
alone: every array of the checkpoint and every line of the logs, to the byte.
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

TESTS = Path(__file__).parent.parent / "tests"  # whose toys are environments, too
# Networks as small as these let QSM diverge by itself, and the others at larger rewards.
AGENTS = ("nclql", "lql", "sac", "dipo", "qvpo", "dacer", "mfp", "sdac", "dpmd")
SMALL = "--hidden 8 8 --reward-scale 0.05 --warmup 60 --batch-size 8 --capacity 200 "
SMALL += "--num-envs 2 --eval-episodes 1"
RUN = "--iterations 300 --eval-every 100 --checkpoint-every 7 --log-every 5"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
MARK = "LANGEVINRL_SOAK"  # an environment variable that all processes of a run inherit


@dataclass(frozen=True)
class Soak:
    """What to do, and for how long."""

    parts: tyro.conf.Positional[tuple[str, ...]] = ("kills", "stops", "load", "reader")
    kills: int = 100  # in all
    kills_per_run: int = 5
    first: int = 0  # number of the first run that is killed, to go on with others
    seconds: float = 600.0  # of each load, and of the reader
    seed: int = 0  # decides the moments
    out: Path = Path("results/reliability")


def start(words: str, mark: str) -> subprocess.Popen[bytes]:
    """A run in a session of its own, so that a signal can be sent to all its processes."""
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(TESTS)])
    env = {"XLA_FLAGS": flags, **os.environ, MARK: mark, "PYTHONPATH": path}
    command = [sys.executable, "-m", "langevinrl", *words.split()]
    with open(mark, "ab") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def run_for(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Until it has worked for so many seconds of a processor, or has ended; says for how many."""
    worked = 0.0
    while process.poll() is None and worked < seconds:
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        worked = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        time.sleep(0.01)
    return worked


def left_behind(mark: str, seconds: float = 15.0) -> int:
    """Processes of a run that live on so many seconds after it ended."""
    end = time.monotonic() + seconds
    while processes_of(mark) and time.monotonic() < end:
        time.sleep(0.2)
    return len(processes_of(mark))


def processes_of(mark: str) -> list[Path]:
    """The folders in /proc of all processes of a run."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(folder)
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found


def shared_memory(mark: str) -> int:
    """How much of /dev/shm the processes of a run hold: what they never had they cannot leave."""
    held = 0
    for folder in processes_of(mark):
        try:
            held += (folder / "maps").read_text().count("/dev/shm/")
        except OSError:
            continue
    return held


def wait_for(path: Path, process: subprocess.Popen[bytes], seconds: float = 300.0) -> None:
    """Until a file is there and holds something."""
    end = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size):
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{path} was never written; the run exited with {process.poll()}")
        time.sleep(0.05)


def contents(run: Path) -> dict[str, Any]:
    """All that a run left, but for the clock and the place."""
    checkpoint = max(path for path in (run / "checkpoints").iterdir() if path.name.isdigit())
    found: dict[str, Any] = {p.name: p.read_bytes() for p in checkpoint.glob("*.safetensors")}
    metadata = json.loads((checkpoint / "metadata.json").read_text())
    for name in ("wall_seconds", "logs", "manifest", "files", "config_digest"):
        metadata.pop(name, None)  # lengths and digests of what holds the clock
    with (run / "evaluations.csv").open() as file:
        rows = [{k: v for k, v in r.items() if k != "wall_seconds"} for r in csv.DictReader(file)]
    return found | {"metadata": metadata, "evaluations": rows,
                    "metrics": (run / "metrics.jsonl").read_text()}  # fmt: skip


def kill_runs(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """Runs of every agent in turn, killed again and again, beside ones that were left alone."""
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
    """One run killed `kills` times and resumed to its end."""
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
        # The first run compiled; the others find its programs, and live shorter.
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
    """Each signal to a whole group of processes: saved, by the right code, nothing left."""
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
    """Memory, threads and open files of all processes of a run together."""
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
    """Two heavy runs, whose use of the machine may not grow once they are under way."""
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
        wait_for_row(folder / "evaluations.csv", process)  # all is compiled, and has been saved
        samples, end = [usage(mark)], time.monotonic() + config.seconds
        while time.monotonic() < end and process.poll() is None:
            time.sleep(2.0)
            samples.append(usage(mark))
        process.terminate()
        code = process.wait(300)
        ended = {"exit_code": code, "processes_left": left_behind(mark)}
        yield growth(name, config.seconds, samples) | ended


def wait_for_row(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until an evaluation has been logged, not only the names of its columns."""
    while len(path.read_text().splitlines()) < 2 and process.poll() is None:
        time.sleep(0.5)


def growth(name: str, seconds: float, samples: list[dict[str, int]]) -> dict[str, Any]:
    """The most used in the first and in the last third of a load."""
    third = max(1, len(samples) // 3)
    row: dict[str, Any] = {"load": name, "seconds": seconds, "samples": len(samples)}
    for key in ("memory_kb", "threads", "files", "processes"):
        row[f"{key}_first"] = max(sample[key] for sample in samples[:third])
        row[f"{key}_last"] = max(sample[key] for sample in samples[-third:])
    return row


def feed_reader(config: Soak, place: Path) -> Iterator[dict[str, Any]]:
    """How many changed files the reader of checkpoints was given, and on how many it failed."""
    words = [str(TESTS / "storage" / "fuzz_reader.py"), str(config.seconds), str(config.seed)]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    yield json.loads(done.stdout.splitlines()[-1])


def write(rows: Iterable[dict[str, Any]], seed: int, path: Path) -> None:
    """A table that grows as rows come, so that what was found is kept if the soak is cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            told = {"soak_seed": seed} | row
            if writer is None:
                writer = csv.DictWriter(file, list(told))
                writer.writeheader()
            writer.writerow(told)
            file.flush()
            print(told, flush=True)


def main(config: Soak) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup runs would ignore it, rightly
    parts = {"kills": kill_runs, "stops": stop_runs, "load": load_runs, "reader": feed_reader}
    if unknown := set(config.parts) - set(parts):
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(parts)}")
    with tempfile.TemporaryDirectory(prefix="langevinrl-soak-") as place:
        os.environ.setdefault("LANGEVINRL_CACHE", f"{place}/programs")
        for name in config.parts:
            write(parts[name](config, Path(place)), config.seed, config.out / f"{name}.csv")


if __name__ == "__main__":
    main(tyro.cli(Soak))
