"""Sizes and times, as blocks of pages: parameters, updates, actions, replay, environments."""

from __future__ import annotations

from result_files import block, joined, read_csv, read_json, table

from langevinrl.registry import METHODS

REPLAY_ROWS = (
    ("memory, GB", "plain GB", "shared GB"),
    ("sampling a batch of 256, µs", "plain sample us", "shared sample us"),
    ("adding one step of five environments, µs", "plain add us", "shared add us"),
    ("checkpoint, GB", "", "checkpoint GB"),
    ("saving, share of the time", "", "share of time"),
)


@block
def parameters() -> str:
    """Tabulate trainable parameters on Humanoid-v4, next to the paper's ratios."""
    found = read_csv("tables/parameters.csv")
    apart = [float(row["paper"]) - float(row["ratio"]) for row in found if row["paper"]]
    larger = [difference for difference in apart if difference > 5e-4]
    sentence = (
        f"{len(larger)} ratios of the paper are {min(larger):.3f} to {max(larger):.3f} larger than "
        "its networks give.\n\n"
    )
    rows = [
        (row["method"], f"{int(row['total']):,}", row["ratio"], row["paper"] or "–")
        for row in found
    ]
    return sentence + table(("method", "parameters", "ratio to NC-LQL", "ratio in the paper"), rows)


@block
def time() -> str:
    """Tabulate the time of an iteration on Humanoid-v4."""
    rows = [
        (row["method"], f"{float(row['ms_per_update']) + float(row['ms_per_action']):.1f} ms",
         row["ratio"], row["paper"] or "–")
        for row in read_csv("tables/time.csv")
    ]  # fmt: skip
    return table(("method", "update and action", "ratio to NC-LQL", "ratio in the paper"), rows)


@block
def speed() -> str:
    """Tabulate the time of an update, one table per size of task."""
    measured = read_json("bench/bench.json")["rows"]
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


@block
def auto_speed() -> str:
    """Say how an update of NC-LQL auto compares with its matrix products."""
    found = read_json("bench/auto/bench.json")
    words = joined(
        f"{row['update']:.1f} ms at {row['sizes']}'s sizes, {row['products ratio']:.2f} times its "
        f"matrix products alone ({row['products']:.1f} ms; "
        f"{1e3 * row['gflop'] / found['gemm_gflops']:.1f} ms at the core's best rate)"
        for row in found["rows"]
    )
    return f"On one core an update of NC-LQL auto takes {words}."


@block
def replay() -> str:
    """Tabulate memory and time of the replay buffer."""
    found = read_json("reliability/replay.json")
    head = ("", *(f"{task}, {kind}" for task in found for kind in ("with next column", "here")))
    rows = [
        (name, *(f"{task[key]:g}" if key else "" for task in found.values() for key in (old, new)))
        for name, old, new in REPLAY_ROWS
    ]
    return table(head, rows)


@block
def latency() -> str:
    """Tabulate the time of a single action in every exported form."""
    found = read_json("bench/latency.json")
    rows = [
        (f"`{row['form']}`" if row["form"] != "plain chain" else "plain jitted chain",
         f"{row['p50'] / 1000:.2f} ms", f"{row['p99'] / 1000:.2f} ms", f"{row['ratio']:.2f}")
        for row in found["rows"]
    ]  # fmt: skip
    return table(("form", "median", "99th percentile", "ratio of medians"), rows)


@block
def replay_memory() -> str:
    """Say how much memory and disk a replay buffer takes."""
    sizes = joined(
        f"{found['shared GB']:.1f} GB for {task}"
        for task, found in read_json("reliability/replay.json").items()
    )
    return (
        f"A million transitions take [about {sizes}](speed.md#replay-and-checkpoints), in memory "
        "and in each checkpoint."
    )


@block
def stepping() -> str:
    """Say when environments in processes are faster than one after the other."""
    found = [row for row in read_csv("envs/stepping.csv") if row["way"] == "async"]
    slow = {int(row["num_envs"]): float(row["ratio"]) for row in found if row["env"] == "sleep:5"}
    quick = [float(row["ratio"]) for row in found if row["env"] != "sleep:5"]
    worse = [ratio for ratio in quick if ratio > 1]
    tasks = joined(
        dict.fromkeys(row["env"].split("-")[0] for row in found if row["env"] != "sleep:5")
    )
    return (
        f"With a step of 5 ms, processes took {slow[2]:.2f} of the time with two environments, "
        f"{slow[8]:.2f} with eight and {slow[64]:.2f} with 64. For {tasks} they were slower in "
        f"{len(worse)} of {len(quick)} cases, by a factor of {min(worse):.1f} to {max(worse):.1f}."
    )
