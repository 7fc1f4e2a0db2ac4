"""Tables of results, as blocks of pages."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean

from result_files import (
    Curve,
    block,
    curves,
    joined,
    read_csv,
    read_json,
    runs_in,
    table,
    value_at,
    whole,
)

from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS

MINUTES = (1, 2, 3, 6)
MARKS = (5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 100_000, 200_000)  # iterations
NORMS = {
    "fast": "NC-LQL auto", "layer norm": "layer norm",
    "scaled observations": "normalised observations", "both": "both",
}  # fmt: skip
REWARD_SIZES = {"a tenth": "a tenth", "rewards as they are": "unchanged", "tenfold": "tenfold"}
SIDES = ("top", "right", "bottom", "left")


@block
def reference() -> str:
    """Tabulate returns of random and zero actions."""
    returns: dict[str, dict[str, str]] = defaultdict(dict)
    for row in read_csv("reference/returns.csv"):
        returns[row["task"]][row["policy"]] = whole(row["mean"])
    rows = [(task, found["random"], found["zero"]) for task, found in returns.items()]
    return table(("task", "random", "zero"), rows)


@block
def auto_choosing() -> str:
    """Tabulate the trials in which settings were chosen, by minutes of CPU time."""
    runs: dict[tuple[str, str, str, str], dict[str, list[tuple[float, float]]]] = {}
    for row in read_csv("auto/choosing.csv"):
        trial = row["trial"], METHODS[row["method"]].label, row["fields"], row["task"]
        seeds = runs.setdefault(trial, defaultdict(list))
        seeds[row["seed"]].append((float(row["cpu_seconds"]), float(row["return"])))
    rows = []
    for (_, method, fields, task), seeds in sorted(runs.items()):
        ends = []
        for minute in MINUTES:
            done = [points for points in seeds.values() if points[-1][0] >= 59 * minute]
            values = [value_at(points, 60 * minute) for points in done]
            ends.append(whole(mean(values)) if values else "")
        rows.append((method, fields.replace(" ", ", ") or "defaults", task, len(seeds), *ends))
    return table(("method", "fields", "task", "seeds", *(f"{m} min" for m in MINUTES)), rows)


@block
def value_bias() -> str:
    """Tabulate the critics' values beside discounted returns, mean of a trial's second half."""
    trials = {"zv-base": "noise in the target falls", "zv-nn1": "it does not", "zv-sac": "SAC"}
    found: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv("auto/value_bias.csv"):
        if row["trial"] in trials:
            found[row["task"], row["seed"], row["trial"]].append(row)
    rows = []
    for (task, seed, trial), own in sorted(found.items()):
        late = own[len(own) // 2 :]
        value, goal, score = (
            mean(float(row[name]) for row in late)
            for name in ("value", "discounted_return", "return")
        )
        rows.append((task, seed, trials[trial], whole(value), whole(goal), whole(score)))
    return table(("task", "seed", "setting", "value", "discounted return", "return"), rows)


@block
def mujoco() -> str:
    """Tabulate the last evaluation of the short runs at the paper's settings."""
    found: dict[tuple[str, str], list[Curve]] = defaultdict(list)
    episodes: dict[tuple[str, str], int] = {}
    for run in runs_in("mujoco"):
        config = read_json(f"{run}/config.json")
        case = config["env"], METHODS[config["agent"]].label
        found[case] += curves(run)
        episodes[case] = config["eval_episodes"]
    rows = []
    for (env, label), seeds in sorted(found.items()):
        last = min(max(curve) for curve in seeds)
        each = ", ".join(whole(curve[last]) for curve in seeds)
        average = whole(mean(curve[last] for curve in seeds))
        rows.append((env, label, f"{last:,}", episodes[env, label], average, each))
    return table(("task", "method", "iterations", "episodes", "return", "each seed"), rows)


@block
def full_length() -> str:
    """Tabulate returns along the runs of the paper's length, and how far they are."""
    found = {read_json(f"{run}/config.json")["env"]: curves(run) for run in runs_in("full_length")}
    reached = min(max(curve) for seeds in found.values() for curve in seeds)
    marks = [mark for mark in MARKS if mark <= reached]
    rows = [
        (env, len(seeds), *(whole(mean(curve[mark] for curve in seeds)) for mark in marks))
        for env, seeds in found.items()
    ]
    lengths = sorted({PAPER_ITERATIONS[env.split("-")[0]] for env in found})
    planned = joined(f"{length:,}" for length in lengths)
    sentence = f"So far {reached:,} of {planned} iterations.\n\n"
    return sentence + table(("task", "seeds", *(f"{mark:,}" for mark in marks)), rows)


@block
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


@block
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


@block
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


@block
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


@block
def lql_start() -> str:
    """Tabulate returns of LQL from three starts of its chain."""
    rows = [
        (*(row[key] for key in ("task", "start", "seeds", "iterations")), whole(row["return"]))
        for row in read_csv("lql_start/table.csv")
    ]
    return table(("task", "start", "seeds", "iterations", "return"), rows)


@block
def sac_check() -> str:
    """Compare SAC here and in Stable-Baselines3."""
    rows = [
        (row["implementation"], row["seeds"], f"{row['last five']} ± {row['error over starts']}")
        for row in read_csv("sac_check/table.csv")
    ]
    return table(("implementation", "seeds", "return"), rows)


@block
def readme_runs() -> str:
    """Tabulate the runs that the README shows."""
    rows = []
    for run in runs_in("readme"):
        config, (curve,) = read_json(f"{run}/config.json"), curves(run)
        seconds = float(read_csv(f"{run}/evaluations.csv")[-1]["wall_seconds"])
        end = config["iterations"]
        rows.append(
            (config["agent"], config["env"], f"{end:,}", f"{seconds:.0f}", whole(curve[end]))
        )
    return table(("method", "task", "iterations", "seconds", "return at the end"), rows)


@block
def policies() -> str:
    """Tabulate the trained policies that come with the repository."""
    rows = [
        (
            row["task"], f"{int(row['iterations']):,}", row["episodes"],
            f"{whole(row['mean'])} ± {whole(row['std'])}",
        )
        for row in read_csv("policies/returns.csv")
    ]  # fmt: skip
    return table(("task", "iterations of training", "episodes", "return"), rows)


@block
def norms() -> str:
    """Tabulate returns with norms in the critics and of observations."""
    return by_case("past_the_paper/norms/table.csv", "case", NORMS)


@block
def reward_size() -> str:
    """Tabulate returns with rewards multiplied by a constant."""
    return by_case("past_the_paper/reward_size/table.csv", "rewards", REWARD_SIZES)


@block
def root_mean_square() -> str:
    """Tabulate returns with w from the median and from the root mean square of gradients."""
    case = "w by itself, spread 0.2"
    found = [
        {row["task"]: row for row in read_csv(f"past_the_paper/{name}/table.csv")
         if row["case"] == case}
        for name in ("temperature", "root_mean_square")
    ]  # fmt: skip
    rows = [(task, *(range_of(way[task]) for way in found)) for task in found[0]]
    return table(("task", "median", "root mean square"), rows)


def range_of(row: dict[str, str]) -> str:
    """Return mean, worst and best seed of a row."""
    mean_, worst, best = (whole(row[key]) for key in ("last three", "worst seed", "best seed"))
    return f"{mean_} ({worst}, {best})"


def by_case(name: str, column: str, labels: dict[str, str]) -> str:
    """Return a row per task and a column per case, with the mean of the last evaluations."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in read_csv(name):
        found[row["task"]][row[column]] = whole(row["last three"])
    rows = [(task, *(cells[case] for case in labels)) for task, cells in found.items()]
    return table(("task", *labels.values()), rows)
