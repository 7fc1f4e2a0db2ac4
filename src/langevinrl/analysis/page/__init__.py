"""The interactive report: one HTML file with its style, scripts and data.

document.py builds the data from a summary; the scripts are joined here in the order they depend on
each other.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent
SCRIPTS = (
    "core", "chart", "figure", "curves", "ablation", "summary", "controls", "runs", "main",
)  # fmt: skip


def source_of(folders: Sequence[Path]) -> str:
    """Return a digest of the folders, by which a page is recognised as theirs."""
    paths = sorted(os.fsencode(folder.resolve()) for folder in folders)
    return hashlib.sha256(b"\0".join(paths)).hexdigest()


def render_page(document: dict[str, Any], source: str = "") -> str:
    """Return the page as text."""
    data = json.dumps(document, separators=(",", ":"), allow_nan=False)
    # Within a script element only "<" can start markup, and a name may contain anything.
    data = data.replace("<", "\\u003c")
    scripts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    page = (
        _asset("page.html").replace("/*SOURCE*/", source).replace("/*STYLE*/", _asset("page.css"))
    )
    return page.replace("/*SCRIPT*/", scripts).replace("/*DATA*/", data)


def _asset(name: str) -> str:
    return (ROOM / name).read_text(encoding="utf-8")
