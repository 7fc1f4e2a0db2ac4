"""Tables as files: CSV to compute with, Markdown and LaTeX to print, from the same rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = dict[str, Any]  # a line of a table, by column

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "–": "--", "×": r"$\times$",
}  # fmt: skip


def spread(values: Sequence[float] | np.ndarray) -> float:
    """How far seeds lie apart: their sample standard deviation; 0 for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Rows that share their columns; no row, no header."""
    rows = [
        {k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()}
        for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        if rows:
            writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, everything as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_table(path: Path, rows: Sequence[Row], caption: str, printed: Sequence[Row]) -> None:
    """A table three times: `rows` as path.csv, and `printed`, shorter, as path.md and path.tex.

    The caption says what is in it; it stands above the table in both.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path.with_name(f"{path.name}.csv"), rows)
    path.with_name(f"{path.name}.md").write_text(markdown(printed, caption))
    path.with_name(f"{path.name}.tex").write_text(latex(printed, caption))


def markdown(rows: Sequence[Row], caption: str = "") -> str:
    """Rows as a Markdown table; the first column to the left, the others to the right."""
    columns = list(rows[0]) if rows else []
    lines = [f"{caption}\n"] if caption else []
    lines.append(f"| {' | '.join(columns)} |")
    lines.append(f"| {' | '.join(['---', *['---:'] * (len(columns) - 1)])} |")
    for row in rows:
        cells = [_shown(row[name]).replace("|", r"\|") for name in columns]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def latex(rows: Sequence[Row], caption: str = "") -> str:
    """Rows as a LaTeX table with the rules of the package booktabs."""
    columns = list(rows[0]) if rows else []
    lines = [r"\begin{table}", r"\centering"]
    if caption:
        lines.append(rf"\caption{{{escape(caption)}}}")
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}", r"\toprule"]
    lines.append(" & ".join(map(escape, columns)) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(escape(_shown(row[name])) for name in columns) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def escape(text: str) -> str:
    """Text as LaTeX prints it, sign for sign."""
    return "".join(LATEX.get(sign, sign) for sign in text)


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def with_interval(estimate: Sequence[float], digits: int) -> str:
    """12.3 (11.0 to 13.1); the number alone where there is no interval, a dash if none is known."""
    value, low, high = estimate
    if math.isnan(value):
        return "–"
    if math.isnan(low):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
