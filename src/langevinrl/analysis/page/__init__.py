"""The interactive report: one HTML file that holds its style, its script and its data.

data.py turns records and groups into the document the page draws; the assets beside it are
joined here, in the order in which a browser has to read them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent
SCRIPTS = (
    "core", "chart", "figure", "curves", "ablation", "summary", "controls", "runs", "main",
)  # fmt: skip


def render_page(document: dict[str, Any]) -> str:
    """The whole page as text."""
    data = json.dumps(document, separators=(",", ":"), allow_nan=False)
    # Within a script element only "<" can begin markup, and a name may hold anything.
    data = data.replace("<", "\\u003c")
    scripts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    page = _asset("page.html").replace("/*STYLE*/", _asset("page.css"))
    return page.replace("/*SCRIPT*/", scripts).replace("/*DATA*/", data)


def write_page(document: dict[str, Any], path: Path) -> Path:
    """The page as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(document), encoding="utf-8")
    return path


def _asset(name: str) -> str:
    return (ROOM / name).read_text(encoding="utf-8")
