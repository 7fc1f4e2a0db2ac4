"""Tables of measured results, as Markdown, from the files under results/."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from langevinrl.registry import METHODS

RESULTS = Path(__file__).parent.parent.parent / "results"
MINUTES = range(1, 7)
CONTESTANTS = {
    "nclql-fast": "NC-LQL auto",
    "nclql-fast-balance": "NC-LQL auto, `--n-step 3 --spread 0.1`",
    "sbx-sac": "SBX SAC",
    "sbx-crossq": "SBX CrossQ",
    "sbx-crossq-equal": "SBX CrossQ, equal width",
}
SIDES = ("top", "right", "bottom", "left")
REPLAY_ROWS = (
    ("memory, GB", "plain GB", "shared GB"),
    ("sampling a batch of 256, µs", "plain sample us", "shared sample us"),
    ("adding one step of five environments, µs", "plain add us", "shared add us"),
    ("checkpoint, GB", "", "checkpoint GB"),
    ("saving, share of the time", "", "share of time"),
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def read_csv(name: str) -> list[dict[str, str]]:
    """Return the rows of a file under results/."""
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def whole(value: str | float) -> str:
    """Round to a whole number, and to one decimal below 50."""
    number = float(value)
    return f"{number:.1f}" if abs(number) < 50 and number != round(number) else f"{number:.0f}"


def reference() -> str:
    """Tabulate returns of random and zero actions."""
    returns: dict[str, dict[str, str]] = defaultdict(dict)
    for row in read_csv("reference/returns.csv"):
        returns[row["task"]][row["policy"]] = whole(row["mean"])
    rows = [(task, found["random"], found["zero"]) for task, found in returns.items()]
    return table(("task", "random", "zero"), rows)


def contest() -> str:
    """Tabulate the last evaluation before each minute of CPU time, mean over seeds."""
    points: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in read_csv("fast/learning.csv"):
        at = float(row["cpu_seconds"]), float(row["return"])
        points[row["env"], row["contestant"], row["seed"]].append(at)
    curves = defaultdict(list)
    for (env, contestant, _), seed in points.items():
        ends = [[value for time, value in seed if time <= 60 * minute][-1] for minute in MINUTES]
        curves[env, contestant].append(ends)
    rows = [
        (
            env,
            CONTESTANTS[contestant],
            len(seeds),
            *(f"{mean(at):.0f}" for at in zip(*seeds, strict=True)),
        )
        for (env, contestant), seeds in sorted(curves.items())
    ]
    return table(("task", "algorithm", "seeds", *(f"{m} min" for m in MINUTES)), rows)


def mujoco() -> str:
    """Tabulate the last evaluation of the short runs at the paper's settings."""
    found: dict[tuple[str, str], list[dict[int, float]]] = defaultdict(list)
    for folder in sorted((RESULTS / "mujoco").glob("*/")):
        config = json.loads((folder / "config.json").read_text())
        for seed in seeds_of(folder):
            found[config["env"], METHODS[config["agent"]].label].append(seed)
    rows = []
    for (env, label), curves in sorted(found.items()):
        last = min(max(curve) for curve in curves)
        each = [whole(curve[last]) for curve in curves]
        average = whole(mean(curve[last] for curve in curves))
        rows.append((env, label, f"{last:,}", average, ", ".join(each)))
    return table(("task", "method", "iterations", "return", "each seed"), rows)


def seeds_of(folder: Path) -> list[dict[int, float]]:
    """Return the mean of each evaluation, one curve per seed of a run."""
    curves: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_csv(str((folder / "evaluations.csv").relative_to(RESULTS))):
        curves[row["seed"]][int(row["iterations"])].append(float(row["return"]))
    return [{at: mean(values) for at, values in curve.items()} for curve in curves.values()]


def full_length() -> str:
    """Tabulate returns along the unfinished runs of full length."""
    marks = (5_000, 10_000, 20_000, 30_000, 40_000, 50_000)
    rows = []
    for folder in sorted((RESULTS / "full_length").glob("*/")):
        (curve,) = seeds_of(folder)
        env = json.loads((folder / "config.json").read_text())["env"]
        rows.append((env, *(whole(curve[mark]) for mark in marks)))
    return table(("task", *(f"{mark:,}" for mark in marks)), rows)


def ten() -> str:
    """Tabulate returns of all methods on the two small tasks."""
    rows = [
        (
            row["method"], row["task"], row["draws"],
            f"{float(row['return']):.0f} ± {float(row['spread']):.0f}",
            f"{float(row['worst seed']):.0f}",
        )
        for row in read_csv("ten/table.csv")
    ]  # fmt: skip
    order = [method.label for method in METHODS.values()]
    rows.sort(key=lambda row: (order.index(row[0]), row[1] != "Pendulum-v1", int(row[2])))
    return table(("method", "task", "draws per action", "return", "worst seed"), rows)


def bandit() -> str:
    """Tabulate the shares of samples near each high mode."""
    rows = [
        (
            row["method"], *(f"{float(row[side]):.3f}" for side in SIDES),
            f"{float(row['sum']):.3f} ± {float(row['sum_spread']):.3f}", row["paper_sum"] or "–",
            f"{float(row['reward_mean']):.3f} ± {float(row['reward_std']):.3f}",
        )
        for row in read_csv("bandit/table.csv")
    ]  # fmt: skip
    head = ("method", "top", "right", "bottom", "left", "sum", "sum in the paper", "reward")
    return table(head, rows)


def bandit_sweep() -> str:
    """Tabulate the distance of samples to the exact distribution, by sampler and w."""
    found: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for row in read_csv("bandit/sweep.csv"):
        key = row["method"], row["score"], float(row["w"])
        found[key].append(float(row["total_variation"]))
    columns = (
        ("exact draws", "exact", ""),
        ("NC-LQL, full gradient", "nclql", "gradient"),
        ("LQL, full gradient", "lql", "gradient"),
        ("NC-LQL, unit score", "nclql", "direction"),
        ("LQL, unit score", "lql", "direction"),
    )
    rows = []
    for w in sorted({key[2] for key in found}):
        cells = [found.get((method, score, w)) for _, method, score in columns]
        rows.append((f"{w:g}", *("–" if cell is None else f"{mean(cell):.3f}" for cell in cells)))
    return table(("w", *(column[0] for column in columns)), rows)


def particles() -> str:
    """Tabulate the worst distance over seeds to the exact distribution."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_csv("temperature/samplers.csv"):
        found[row["sampler"].replace("exact law", "exact draws")][float(row["w"])].append(
            float(row["total_variation"])
        )
    weights = sorted({w for curve in found.values() for w in curve})
    rows = [
        (sampler, *(f"{max(curve[w]):.3f}" for w in weights)) for sampler, curve in found.items()
    ]
    return table(("sampler", *(f"w = {w:g}" for w in weights)), rows)


def automatic_w() -> str:
    """Tabulate returns with an automatic w and with fixed values of w."""
    rows = [
        (
            row["task"], row["case"].replace("w by itself", "automatic w"), row["seeds"],
            f"{float(row['last three']):.0f}",
            f"{float(row['worst seed']):.0f}, {float(row['best seed']):.0f}",
        )
        for row in read_csv("past_the_paper/temperature/table.csv")
    ]  # fmt: skip
    return table(("task", "setting", "seeds", "return", "worst and best seed"), rows)


def lql_start() -> str:
    """Tabulate returns of LQL from three starts of its chain."""
    rows = [
        (*(row[key] for key in ("task", "start", "seeds", "iterations")), whole(row["return"]))
        for row in read_csv("lql_start/table.csv")
    ]
    return table(("task", "start", "seeds", "iterations", "return"), rows)


def sac_check() -> str:
    """Compare SAC here and in Stable-Baselines3."""
    rows = [
        (row["implementation"], row["seeds"], f"{row['last five']} ± {row['error over starts']}")
        for row in read_csv("sac_check/table.csv")
    ]
    return table(("implementation", "seeds", "return"), rows)


def parameters() -> str:
    """Tabulate trainable parameters on Humanoid-v4."""
    rows = [
        (row["method"], f"{int(row['total']):,}", row["ratio"], row["paper"] or "–")
        for row in read_csv("tables/parameters.csv")
    ]
    return table(("method", "parameters", "ratio to NC-LQL", "ratio in the paper"), rows)


def time() -> str:
    """Tabulate the time of an iteration on Humanoid-v4."""
    rows = [
        (row["method"], f"{float(row['ms_per_update']) + float(row['ms_per_action']):.1f} ms",
         row["ratio"], row["paper"] or "–")
        for row in read_csv("tables/time.csv")
    ]  # fmt: skip
    return table(("method", "update and action", "ratio to NC-LQL", "ratio in the paper"), rows)


def speed() -> str:
    """Tabulate the time of an update, one table per size of task."""
    measured = json.loads((RESULTS / "bench" / "bench.json").read_text())["rows"]
    parts = []
    for size in ("HalfCheetah", "Humanoid"):
        rows = [
            (METHODS[row["agent"]].label, f"{row['update']:.0f} ms",
             f"{row['plain update']:.0f} ms", f"{row['ratio']:.2f}", f"{row['act']:.1f} ms")
            for row in measured if row["sizes"] == size
        ]  # fmt: skip
        head = (f"{size}", "update", "straightforward", "ratio", "action in five environments")
        parts.append(table(head, rows))
    return "\n".join(parts)


def replay() -> str:
    """Tabulate memory and time of the replay buffer."""
    found: dict[str, Any] = json.loads((RESULTS / "reliability" / "replay.json").read_text())
    head = ("", *(f"{task}, {kind}" for task in found for kind in ("with next column", "here")))
    rows = [
        (name, *(f"{task[key]:g}" if key else "" for task in found.values() for key in (old, new)))
        for name, old, new in REPLAY_ROWS
    ]
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "reference": reference, "contest": contest, "mujoco": mujoco, "full-length": full_length,
    "ten": ten, "bandit": bandit, "bandit-sweep": bandit_sweep, "particles": particles,
    "automatic-w": automatic_w, "lql-start": lql_start, "sac-check": sac_check,
    "parameters": parameters, "time": time, "speed": speed, "replay": replay,
}  # fmt: skip
