"""Tables of all methods, and the printed summary."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from langevinrl.analysis.statistics import standard_deviation
from langevinrl.analysis.tables import Row
from langevinrl.registry import label_of
from langevinrl.studies.bandit.measure import MODES, exact_policy, measure
from langevinrl.studies.bandit.settings import TRAININGS, BanditConfig


def gather(config: BanditConfig, found: dict[str, dict[str, list[Row]]]) -> dict[str, list[Row]]:
    """Join the methods' tables; add exact samples to the sweep and the summary over seeds."""
    order = [found[name] for name in config.methods]
    tables = {
        kind: [row for tables in order for row in tables.get(kind, [])]
        for kind in ("seeds", "smoothing", "sweep")
    }
    for w in config.sweep:
        actions = exact_policy(w, config.bound).sample(
            config.samples, np.random.default_rng(config.seed)
        )
        row = {"method": "exact", "score": "", "seed": config.seed}
        tables["sweep"].append(row | measure(actions, w, config.bound))
    tables["table"] = [table_row(name, found[name]["seeds"]) for name in config.methods]
    return tables


def table_row(name: str, rows: list[Row]) -> Row:
    """Return a method's means over seeds, their standard deviation, and the paper's shares."""
    row: Row = {"method": label_of(name), "seeds": len(rows)}
    for column in rows[0]:
        if column in ("method", "seed"):
            continue
        values = [r[column] for r in rows if r[column] is not None]
        row[column] = float(np.mean(values)) if values else None
        if column in ("sum", "reward_mean"):
            row[f"{column}_spread"] = standard_deviation(values)
    paper = TRAININGS[name].paper
    for i, mode in enumerate(MODES):
        row[f"paper_{mode}"] = paper[i] if paper else None
    return row | {"paper_sum": round(sum(paper), 3) if paper else None}


def print_table(rows: list[Row], console: Console) -> None:
    """Print the summary, a row per method."""

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    printed = [
        {
            "method": row["method"],
            **{mode: number(row[mode], 3) for mode in MODES},
            "sum ± seeds": f"{row['sum']:.3f} ± {row['sum_spread']:.3f}",
            "paper": number(row["paper_sum"], 3),
            "reward ± std": f"{row['reward_mean']:.3f} ± {row['reward_std']:.3f}",
            "w": number(row["w"], 1),
            "TV": number(row["total_variation"], 3),
            "near w": f"{row['nearest_w']:.1f} ({row['nearest_total_variation']:.2f})",
        }
        for row in rows
    ]
    title = "Shares within 0.3 of the high modes; total variation to exp(w r)/Z"
    table = Table(*printed[0], title=title)
    for cells in printed:
        table.add_row(*cells.values())
    wide = console if console.is_terminal else Console(width=130)  # a file needs no line breaks
    wide.print(table)
