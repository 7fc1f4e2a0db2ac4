"""Golden record: numbers of a short run of every agent, which refactoring must not change.

python tests/golden/record.py check [AGENT ...]  # differences from golden.json, hashes included
python tests/golden/record.py write [AGENT ...]  # write golden.json again, after a wanted change
python tests/golden/record.py bandit DIR         # write bandit.json from a quick study
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TABLE, BANDIT = HERE / "golden.json", HERE / "bandit.json"
sys.path.insert(0, str(HERE.parent))  # toys

import conftest  # noqa: E402, F401  sets the compiler flags of the tests

from langevinrl.runs.config import RunConfig  # noqa: E402
from langevinrl.runs.train import resume, train  # noqa: E402

RUN: dict[str, Any] = {
    "iterations": 4, "seed": 3, "seeds": 2, "num_envs": 2, "warmup": 60, "batch_size": 16,
    "capacity": 100, "eval_every": 4, "eval_episodes": 2, "checkpoint_every": 3, "log_every": 2,
}  # fmt: skip
# Small and smooth settings: unit gradients would amplify rounding.
SMOOTH: dict[str, Any] = {"inverse_temperature": 10.0, "normalise": False}
FEW: dict[str, Any] = {"num_steps": 5, "best_of": 3}
FIELDS: dict[str, dict[str, Any]] = {
    "nclql": SMOOTH | {"num_levels": 3, "embedding_size": 4, "best_of": 2},
    "nclql-auto": {"num_levels": 3, "embedding_size": 4, "best_of": 2, "calm_updates": 2},
    "lql": SMOOTH | {"num_steps": 5},
    "sac": {},
    "qsm": FEW,
    "dipo": {"num_steps": 5, "num_ascent_steps": 3, "embedding_size": 4},
    "qvpo": FEW | {"embedding_size": 4},
    "dacer": {"num_steps": 5, "embedding_size": 4, "num_entropy_actions": 12}
    | {"temperature_delay": 4},
    "mfp": {"flow_steps": 3, "best_of": 3},
    "sdac": FEW | {"embedding_size": 4, "num_noises": 6, "temperature_delay": 4},
    "dpmd": FEW | {"embedding_size": 4, "temperature_delay": 4},
}


def make_run(agent: str, folder: Path) -> None:
    """Run four iterations, then four more after a resume."""
    fields = {"hidden": (8, 8)} | FIELDS[agent]
    train(
        RunConfig("toys:golden", agent=agent, hyperparameters=fields, out=str(folder), **RUN),
        quiet=True,
    )
    resume(folder, 8, quiet=True)


def record(folder: Path) -> dict[str, Any]:
    """Return hashes of a run's files, and moments of its weights, replay and metrics."""
    from safetensors.numpy import load_file

    checkpoint = max((folder / "checkpoints").iterdir())
    arrays = {p.stem: load_file(p) for p in sorted(checkpoint.glob("*.safetensors"))}
    metrics = learning_metrics(folder)
    with (folder / "evaluations.csv").open(newline="") as file:
        rows = [{k: v for k, v in r.items() if k != "wall_seconds"} for r in csv.DictReader(file)]
    hashes = {group: _hash_arrays(named) for group, named in arrays.items()}
    hashes |= {"metrics": _hash(metrics.encode()), "evaluations": _hash(json.dumps(rows).encode())}
    values = {f"state {name}": _moments(a) for name, a in arrays["state"].items()}
    values |= {f"replay {name}": _moments(a) for name, a in arrays["replay"].items()}
    # Returns are only hashed: an evaluation action depends on the last bit of its observation.
    for line in map(json.loads, metrics.splitlines()):
        place = f"metrics {line.pop('seed')} {line.pop('iterations')}"
        values |= {f"{place} {name}": [value] for name, value in line.items()}
    return {"hashes": hashes, "values": values}


def learning_metrics(folder: Path) -> str:
    """Return metrics.jsonl without statistics of episodes and samplers."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    kept = [
        {k: v for k, v in r.items() if not k.startswith(("rollout/", "sampler/"))} for r in rows
    ]
    return "".join(json.dumps(row) + "\n" for row in kept)


def record_bandit(folder: Path) -> dict[str, list[float]]:
    """Return every number in the tables of a quick study."""
    values: dict[str, list[float]] = {}
    for table in ("seeds", "sweep", "smoothing"):
        with (folder / f"{table}.csv").open(newline="") as file:
            for i, row in enumerate(csv.DictReader(file)):
                place = f"{table} {i} {row.pop('method')} {row.pop('score', '')}"
                values |= {f"{place} {name}": [float(v)] for name, v in row.items() if v}
    return values


def _moments(array: np.ndarray) -> list[float]:
    wide = array.astype(np.float64)
    return [float(f"{x:.8g}") for x in (wide.mean(), np.sqrt((wide**2).mean()))]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _hash_arrays(named: dict[str, np.ndarray]) -> str:
    return _hash(b"".join(n.encode() + a.tobytes() for n, a in sorted(named.items())))


def differences(now: dict[str, Any], then: dict[str, Any], tolerance: float = 1e-5) -> list[str]:
    """Return a line for each value that is missing, new or different."""
    found = [f"only now: {name}" for name in now.keys() - then.keys()]
    found += [f"only then: {name}" for name in then.keys() - now.keys()]
    for name in sorted(now.keys() & then.keys()):
        if not np.allclose(now[name], then[name], rtol=tolerance, atol=tolerance):
            found.append(f"{name}: {then[name]} -> {now[name]}")
    return found


def main(mode: str, agents: list[str]) -> None:
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for agent in agents or FIELDS:
        with tempfile.TemporaryDirectory() as place:
            make_run(agent, Path(place) / "run")
            now = record(Path(place) / "run")
        then = table.get(agent, {"hashes": {}, "values": {}})
        changed = [g for g, h in now["hashes"].items() if then["hashes"].get(g) != h]
        print(agent, "hashes that differ:", ", ".join(changed) or "none")
        for line in differences(now["values"], then["values"])[:5]:
            print("   ", line)
        table[agent] = now
    if mode == "write":
        TABLE.write_text(json.dumps(table, indent=0).replace(",\n", ",") + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "bandit":
        numbers = record_bandit(Path(sys.argv[2]))
        BANDIT.write_text(json.dumps(numbers, indent=0) + "\n")
    else:
        main(sys.argv[1], sys.argv[2:])
