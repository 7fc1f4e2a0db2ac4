"""Tables as CSV, Markdown and LaTeX files."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from langevinrl.storage.files import write_text

Row: TypeAlias = dict[str, Any]  # one row of a table, by column

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "–": "--", "×": r"$\times$",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One table: file name, caption, rows with all columns, and rows to print."""

    name: str
    caption: str
    rows: list[Row]
    printed: list[Row]


def safe_file_name(name: str) -> str:
    """Return a name without folders or odd characters; a checksum keeps changed names distinct."""
    safe = re.sub(r"[^\w.-]+", "-", name)[:100].strip(".-")
    return (
        safe if safe == name else f"{safe}-{crc32(name.encode(errors='replace')):08x}".lstrip("-")
    )


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write rows with the same columns; without rows the file is empty."""
    rows = [{name: _csv_cell(value) for name, value in row.items()} for row in rows]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else [])
    if rows:
        writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _csv_cell(value: Any) -> Any:
    """Shorten floats; put an apostrophe before text that a spreadsheet would run as a formula."""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        try:
            float(value)  # a number written as text, such as -12.3
        except ValueError:
            return f"'{value}"
    return value


def read_csv(path: Path) -> list[Row]:
    """Read the rows of a table, every cell as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_table(table: Table, folder: Path) -> None:
    """Write a table as name.csv, and its shorter form as name.md and name.tex."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / f"{table.name}.csv", table.rows)
    write_text(folder / f"{table.name}.md", markdown(table.printed, table.caption))
    write_text(folder / f"{table.name}.tex", latex(table.printed, table.caption))


def markdown(rows: Sequence[Row], caption: str) -> str:
    """Format rows as a Markdown table; the first column is aligned left, the others right."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in _cells(rows, _escape_markdown))
    sides = f"| {' | '.join(['---', *['---:'] * (len(rows[0]) - 1)])} |"
    return "\n".join([f"{_escape_markdown(caption)}\n", head, sides, *lines]) + "\n"


def latex(rows: Sequence[Row], caption: str) -> str:
    """Format rows as a LaTeX table; needs the package booktabs."""
    head, *lines = (" & ".join(cells) + r" \\" for cells in _cells(rows, _escape_latex))
    start = [r"\begin{table}", r"\centering", rf"\caption{{{_escape_latex(caption)}}}"]
    start += [rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\toprule"]
    end = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*start, head, r"\midrule", *lines, *end]) + "\n"


def _cells(rows: Sequence[Row], escape: Callable[[str], str]) -> list[list[str]]:
    """Return the names of the columns and the cells of every row, as escaped text."""
    lines = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    return [[escape(text) for text in line] for line in lines]


def _escape_markdown(text: str) -> str:
    """Escape HTML, links, images and code, and keep the text on one line."""
    escaped = re.sub(r"([\\`|\[\]])", r"\\\1", html.escape(text, quote=False))
    return " ".join(escaped.split())


def _escape_latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def with_interval(estimate: Sequence[Any], digits: int) -> str:
    """Format as 12.3 (11.0 to 13.1); without interval as 12.3, a missing value as a dash."""
    value, low, high = map(float, estimate)
    if math.isnan(value):
        return "–"
    if math.isnan(low):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
