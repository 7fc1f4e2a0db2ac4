"""Sentences with measured numbers, as blocks of pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean

from result_files import (
    RESULTS,
    Curve,
    block,
    curves,
    curves_of,
    joined,
    plural,
    read_csv,
    read_json,
    runs_in,
    table,
    whole,
)

PENDULUM, CHEETAH = "InvertedDoublePendulum-v4", "HalfCheetah-v4"
BALANCED = 9_000  # a return that only balancing to the end of the episode gives


def balanced_from(seeds: Sequence[Curve]) -> int:
    """Return the iteration from which all evaluations of all seeds are balanced."""
    falls = [at for curve in seeds for at, value in curve.items() if value < BALANCED]
    return min(at for curve in seeds for at in curve if at > max(falls))


@block
def readme_summary() -> str:
    """Say how long the README's runs take and what they reach."""
    found = {}
    for run in runs_in("readme"):
        config, (curve,) = read_json(f"{run}/config.json"), curves(run)
        seconds = float(read_csv(f"{run}/evaluations.csv")[-1]["wall_seconds"])
        found[config["env"]] = f"{seconds:.0f} s", f"{curve[config['iterations']]:,.0f}"
    (first, first_return), (second, second_return) = found[PENDULUM], found[CHEETAH]
    return (
        f"On one core this takes {first}, compilation included, and reaches a return of "
        f"{first_return}: the pendulum is balanced. The first of the commands below takes {second} "
        f"and reaches {second_return} (one seed each, [data](results/readme))."
    )


@block
def nclql_results() -> str:
    """Say what NC-LQL reaches at the paper's settings."""
    pendulum, cheetah = (curves_of("mujoco", "nclql", env) for env in (PENDULUM, CHEETAH))
    last = min(max(curve) for curve in cheetah)
    return (
        f"With the paper's hyperparameters NC-LQL balances {PENDULUM} from iteration "
        f"{balanced_from(pendulum):,} on ({plural(len(pendulum), 'seed')}) and reaches "
        f"{mean(curve[last] for curve in cheetah):.0f} on {CHEETAH} after {last:,} iterations "
        f"(mean of {plural(len(cheetah), 'seed')})."
    )


@block
def lql_results() -> str:
    """Say what LQL reaches at the paper's settings."""
    seeds = curves_of("mujoco", "lql", PENDULUM)
    return (
        f"LQL balances {PENDULUM} from iteration {balanced_from(seeds):,} on "
        f"({plural(len(seeds), 'seed')})."
    )


@block
def released() -> str:
    """Compare the authors' code with the mean of our seeds, where both were evaluated."""
    lines = []
    for env in (PENDULUM, CHEETAH):
        seeds = curves_of("mujoco", "nclql", env)
        theirs = {
            int(row["iterations"]): float(row["return"])
            for row in read_csv("released/evaluations.csv")
            if row["env"] == env
        }
        common = [at for at in theirs if all(at in curve for curve in seeds)]
        below = [at for at in common if theirs[at] < mean(curve[at] for curve in seeds)]
        last = common[-1]
        each = joined(whole(curve[last]) for curve in seeds)
        lines.append(
            f"on {env} it is below the mean of our {plural(len(seeds), 'seed')} at {len(below)} of "
            f"{len(common)} common evaluations (at the last, {last:,}: {theirs[last]:.0f}; ours "
            f"{each})"
        )
    return f"The authors' released code was run with one seed on two tasks: {'; '.join(lines)}."


@block
def rehearsal() -> str:
    """Say how long the rehearsal of the main study took."""
    text = (RESULTS / "rehearsal" / "log.txt").read_text()
    size = re.search(r"(\d+) runs in (\d+) jobs", text)
    end = re.search(r"^done (\d+), running 0, failed (\d+), waiting 0$", text, re.MULTILINE)
    clock = re.search(r"^real\s+(\d+)m(\d+)", text, re.MULTILINE)
    assert size and end and clock and end[1] == size[2]
    return (
        "`langevinrl reproduce mujoco --scale 0.001 --yes` made "
        f"{size[1]} runs on two cores in {clock[1]} min {clock[2]} s; {end[2]} failed."
    )


@block
def bandit_modes() -> str:
    """Say how many samples of LQL and NC-LQL end near a high mode."""
    share = {row["method"]: float(row["sum"]) for row in read_csv("bandit/table.csv")}
    return (
        "Top: LQL samples on the critic itself. At large $w$ each chain climbs the nearest mode, "
        f"high or low, and stays there: {share['LQL']:.3f} of the samples end near a high mode. "
        f"Middle: NC-LQL, {share['NC-LQL']:.3f}. Bottom: the exact distribution."
    )


@block
def bandit_errors() -> str:
    """Give the largest error of the learned values at any level of any seed."""
    errors = [
        float(row["rmse"]) for row in read_csv("bandit/smoothing.csv") if row["method"] == "nclql"
    ]
    return (
        "The root mean square error of the learned values is at most "
        f"{max(errors):.3f} at any level of any seed."
    )


@block
def bandit_search() -> str:
    """Tabulate the search for the largest noise level of NC-LQL."""
    chosen = {"method": "nclql", "sigma_min": "0.3", "inverse_temperature": "500"}
    chosen["step_size"] = "0.0005"
    found = [row for row in read_csv("bandit/search.csv") if chosen.items() <= row.items()]
    rows = [
        (row["sigma_max"], *(f"{float(row[key]):.3f}" for key in ("sum", "disturbed_unequal")))
        for row in sorted(found, key=lambda row: row["sigma_max"])
    ]
    head = ("σ₁", "near high modes, exact values", "deviation of shares from 0.25, with error")
    return table(head, rows)


@block
def endurance() -> str:
    """List what the endurance tests did and found."""
    kills, stops = read_csv("reliability/kills.csv"), read_csv("reliability/stops.csv")
    equal = sum(row["byte_equal"] == "True" for row in kills)
    left = sum(int(row["processes_left"]) for row in kills)
    right = sum(row["exit_code"] == row["expected"] for row in stops)
    seconds = [float(row["seconds_to_stop"]) for row in stops]
    (reader,) = read_csv("reliability/reader.csv")
    return "\n".join(
        (
            f"- `kills.csv`: {sum(int(row['kills']) for row in kills)} SIGKILLs at random moments "
            f"of {len(kills)} runs of {len({row['agent'] for row in kills})} methods. {equal} runs "
            f"ended byte-equal to uninterrupted runs; {left} processes were left behind.",
            f"- `stops.csv`: {len(stops)} signals to whole process groups, with and without "
            f"environment processes. {right} runs saved and exited with the documented code, "
            f"{min(seconds):.1f} to {max(seconds):.1f} s after the signal.",
            f"- `reader.csv`: {int(reader['tried']):,} damaged files given to the reader of "
            f"checkpoints in {reader['seconds']} s; {reader['failed']} caused a traceback or were "
            "accepted wrongly.",
        )
    )
