"""Pages that are linked before they are written: a link to one that is not there is plain text."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = ("your-environment", "deploy", "logging")


def unlink(app: Sphinx, name: str, source: list[str]) -> None:
    """Take links and table-of-contents entries of missing pages out of a page's text."""
    for page in PAGES:
        if not (Path(app.srcdir) / f"{page}.md").exists():
            text = re.sub(rf"\[([^\]]*)\]\((?:\.\./)*{page}\.md(?:#[^)]*)?\)", r"\1", source[0])
            source[0] = re.sub(rf"^{page}\n", "", text, flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", unlink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
