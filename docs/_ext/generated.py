"""Generated parts of pages: fields, help texts and the notes of results.

Everything goes to docs/_generated, which git ignores. A file is written only if its text changed,
so that a second build reads few pages again.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fields import Row, describe_fields
from result_files import RESULTS, table

from langevinrl.registry import METHODS

OUT = Path(__file__).parent.parent / "_generated"
HEAD = ("field", "default", "meaning")


def write_all() -> None:
    """Write every file that a page includes."""
    for name, method in METHODS.items():
        write(f"{name}-fields.md", table(HEAD, describe_fields(method.load())[0]))
    write("methods.md", method_list())
    write("hyperparameters.md", hyperparameters())
    write("common-fields.md", table(HEAD, common_fields()))
    write("short.md", preset_table("short"))
    write("run-fields.md", run_fields())
    write("commands.md", command_pages())
    write("provenance.md", provenance())
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


def method_list() -> str:
    """Return a row per method, with a link to its page."""
    rows = [
        (f"[{method.label}]({name}.md)", f"`{name}`", method.summary, method.paper)
        for name, method in METHODS.items()
    ]
    return table(("method", "name", "summary", "paper"), rows)


def hyperparameters() -> str:
    """Return the default of every field of every method, a column per method."""
    columns = []
    for method in METHODS.values():
        own, shared = describe_fields(method.load())
        columns.append({field: default for field, default, _ in own + shared})
    shared_by_all = [name for name in columns[0] if all(name in column for column in columns)]
    names = dict.fromkeys([*shared_by_all, *(name for column in columns for name in column)])
    rows = [(name, *(column.get(name, "") for column in columns)) for name in names]
    return table(("field", *(method.label for method in METHODS.values())), rows)


def common_fields() -> list[Row]:
    """Return the fields that all methods share."""
    from langevinrl.agents.contract import Common

    return describe_fields(Common)[0]


def preset_table(preset: str) -> str:
    """Return the values of a preset, a column per method."""
    columns = [method.load().presets.get(preset, {}) for method in METHODS.values()]
    names = list(dict.fromkeys(field for column in columns for field in column))
    cells = [
        [f"`{column[name]}`" if name in column else "" for column in columns] for name in names
    ]
    head = ("field", *(method.label for method in METHODS.values()))
    return table(head, [(f"`{name}`", *row) for name, row in zip(names, cells, strict=True)])


def provenance() -> str:
    """Return the README of every folder of results, with targets that other pages link to."""
    parts = []
    for path in sorted(RESULTS.glob("*/README.md")):
        text = re.sub(r"^#", "##", path.read_text(), flags=re.MULTILINE)
        parts.append(f"(results-{path.parent.name})=\n{text}")
    return "\n".join(parts)


def run_fields() -> str:
    """Return the fields of a run."""
    from langevinrl.runs.config import RunConfig

    own, _ = describe_fields(RunConfig)
    hidden = ("`hyperparameters`", "`agent`")
    return table(HEAD, [row for row in own if row[0] not in hidden])


def command_pages() -> str:
    """Return the help text of every verb."""
    from langevinrl.cli import VERBS, main

    parts = []
    for verb, summary in VERBS.items():
        words = [verb, "nclql", "--help"] if verb == "train" else [verb, "--help"]
        shown = f"langevinrl {' '.join(words)}"
        text = printed(lambda words=words: main(words))
        summary = re.sub(r": (langevinrl .*)\.$", r": `\1`", summary)
        parts.append(
            f"## {verb}\n\n{summary}\n\n:::{{container}} help\n```text\n$ {shown}\n{text}```\n:::\n"
        )
    return "\n".join(parts)


def printed(call: Callable[[], Any]) -> str:
    """Return what a command prints, without colours, at a fixed width."""
    os.environ["COLUMNS"] = "92"
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        call()
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue())
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
