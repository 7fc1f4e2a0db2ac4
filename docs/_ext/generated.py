"""What pages include and nobody writes by hand: fields, help texts, tables and curves of results.

Everything goes to docs/_generated, which git ignores; a file is touched only if its text changed,
so that a second build reads few pages again.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fields import describe_fields

from langevinrl.registry import METHODS

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results"
OUT = ROOT / "docs" / "_generated"


def write_all() -> None:
    """Every file that a page includes."""
    for name in METHODS:
        write(f"{name}-fields.md", field_table(METHODS[name].load()))
        write(f"{name}-results.md", method_results(name))
        write(f"{name}-logged.md", logged_table(name))
        draw_curves(name)
    write("methods.md", method_list())
    write("speed.md", speed_table())
    write("run-fields.md", run_field_table())
    write("commands.md", command_pages())
    write("callbacks.md", ready_callbacks())
    copy(RESULTS / "bandit" / "page.html", OUT / "extra" / "bandit-live.html")


def write(name: str, text: str) -> None:
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        shutil.copy(source, target)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def field_table(kind: type[Any]) -> str:
    """An agent's own fields and those that all share, with defaults and sentences."""
    own, shared = describe_fields(kind)
    parts = [table(("field", "default", "what it is"), own)]
    for preset, values in kind.presets.items():
        said = ", ".join(f"`{name}` {value}" for name, value in values.items())
        parts.append(f"\n`--preset {preset}` sets {said}; what else is given stands on that.\n")
    if shared:
        parts += ["\nShared by all methods:\n\n", table(("field", "default", "what it is"), shared)]
    return "".join(parts)


def run_field_table() -> str:
    from langevinrl.runs.config import RunConfig

    own, _ = describe_fields(RunConfig)
    hidden = ("`hyperparameters`", "`agent`")
    return table(("field", "default", "what it is"), [row for row in own if row[0] not in hidden])


def method_list() -> str:
    """A row per method, with its page."""
    rows = [
        (f"[{method.label}]({name}.md)", f"`{name}`", method.summary, method.paper)
        for name, method in METHODS.items()
    ]
    return table(("method", "name", "what it does", "paper"), rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def method_results(name: str) -> str:
    """What was measured of one method: small tasks, the bandit, time; and the paper's own score."""
    return "\n".join([small_tasks(name), bandit_row(name), speed_row(name), paper_line(name)])


def paper_line(name: str) -> str:
    from langevinrl.analysis import paper

    score, spread = paper.NORMALISED[name][-1], paper.PLUS_MINUS[name]
    return (
        f"The paper reports a normalised score of {score} ± {spread} over its nine tasks "
        "after full training (it does not say how it normalises). On Humanoid "
        f"{paper.COUNTED_PARAMETERS[name]:,} parameters are trained.\n"
    )


def small_tasks(name: str) -> str:
    label = METHODS[name].label
    rows = [
        (
            row["task"], row["draws"], f"{int(row['iterations']):,}",
            f"{float(row['return']):.0f} ± {float(row['spread']):.0f}",
            f"{float(row['worst seed']):.0f}",
            f"{float(row['random']):.0f} / {float(row['zero']):.0f}",
        )
        for row in read_csv(RESULTS / "ten" / "table.csv")
        if row["method"] == label
    ]  # fmt: skip
    head = (
        "task",
        "draws per action",
        "iterations",
        "return",
        "worst seed",
        "random / zero action",
    )
    return f"{table(head, rows)}\n![Returns of {label}](../_generated/{name}-curves.png)\n"


def logged_table(name: str) -> str:
    """What one run of three seeds logged early and at its end, as a measure for other runs."""
    folder = sorted((RESULTS / "ten").glob(f"{name}-Pendulum-v1-*"))[0]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    ends = lines[0]["iterations"], lines[-1]["iterations"]
    rows = []
    for key in [key for key in lines[0] if "/" in key]:
        at = [[line[key] for line in lines if line["iterations"] == end] for end in ends]
        rows.append((f"`{key}`", *(f"{sum(values) / len(values):.3g}" for values in at)))
    intro = f"In our run on Pendulum-v1 (`results/ten/{folder.name}`), mean of its seeds:\n\n"
    return intro + table(("", *(f"iteration {end:,}" for end in ends)), rows)


def bandit_row(name: str) -> str:
    label = METHODS[name].label
    row = next(r for r in read_csv(RESULTS / "bandit" / "table.csv") if r["method"] == label)
    cells = [f"{float(row[side]):.3f}" for side in ("top", "right", "bottom", "left")]
    total = f"{float(row['sum']):.3f} ± {float(row['sum_spread']):.3f}"
    paper = row["paper_sum"] or "–"
    reward = f"{float(row['reward_mean']):.3f}"
    head = ("top", "right", "bottom", "left", "sum", "paper's sum", "mean reward")
    intro = (
        f"On the [2D bandit](../bandit.md), {row['seeds']} seeds, share near each high mode:\n\n"
    )
    return intro + table(head, [(*cells, total, paper, reward)])


def bench_rows() -> list[dict[str, Any]]:
    return list(json.loads((RESULTS / "bench" / "bench.json").read_text())["rows"])


def speed_row(name: str) -> str:
    rows = [
        (
            row["sizes"], f"{row['update']:.0f} ms", f"{row['plain update']:.0f} ms",
            f"{row['ratio']:.2f}", f"{row['act']:.1f} ms",
        )
        for row in bench_rows()
        if row["agent"] == name
    ]  # fmt: skip
    head = ("sizes of", "one update", "straightforward version", "ratio", "acting in five envs")
    return "Time on two CPU cores ([how](../speed.md)):\n\n" + table(head, rows)


def speed_table() -> str:
    """A table for each of two sizes of task."""
    parts = []
    for size in ("HalfCheetah", "Humanoid"):
        rows = [
            (
                METHODS[row["agent"]].label, f"{row['update']:.0f} ms",
                f"{row['plain update']:.0f} ms", f"{row['ratio']:.2f}",
                f"{row['peak MB']:.0f} / {row['plain peak MB']:.0f} MB",
            )
            for row in bench_rows() if row["sizes"] == size
        ]  # fmt: skip
        head = (f"{size}'s size", "update", "straightforward", "ratio", "peak memory, ours / its")
        parts.append(table(head, rows))
    return "\n".join(parts)


def draw_curves(name: str) -> None:
    """A method's curves on the two small tasks, by the library's own means."""
    from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure

    path, folders = OUT / f"{name}-curves.png", sorted((RESULTS / "ten").glob(f"{name}-*"))
    newest = max((folder / "evaluations.csv").stat().st_mtime for folder in folders)
    if not path.exists() or path.stat().st_mtime < newest:
        write_figure(learning_curves(group_runs(find_runs(folders))), path)


def command_pages() -> str:
    """Every verb's own help, as the terminal shows it."""
    from langevinrl.cli import VERBS, main

    parts = []
    for verb, summary in VERBS.items():
        words = [verb, "nclql", "--help"] if verb == "train" else [verb, "--help"]
        shown = f"langevinrl {' '.join(words)}"
        said = said_by(lambda words=words: main(words))
        summary = re.sub(r": (langevinrl .*)\.$", r": `\1`", summary)
        parts.append(
            f"## {verb}\n\n{summary}\n\n:::{{container}} help\n```text\n$ {shown}\n{said}```\n:::\n"
        )
    return "\n".join(parts)


def ready_callbacks() -> str:
    """The callbacks that come with the library, if this version has them in one place."""
    if importlib.util.find_spec("langevinrl.callbacks") is None:
        return ""
    return (
        "```{eval-rst}\n.. automodule:: langevinrl.callbacks\n   :members:\n"
        "   :exclude-members: Callback\n   :special-members: __init__\n```\n"
    )


def said_by(call: Callable[[], None]) -> str:
    """What a command prints before it ends, without colours, at a fixed width."""
    os.environ["COLUMNS"] = "92"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        call()
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue())
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
