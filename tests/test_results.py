"""Measured numbers in pages: every block equals what the files under results/ give."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "experiments"))
import make_results  # type: ignore[import-not-found]  # noqa: E402  # on the path above

PAGES = [page for page in make_results.pages() if "\n<!-- results:" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert make_results.updated(text) == text, "run `make results`"


def test_every_run_was_made_from_committed_code() -> None:
    found = [json.loads(path.read_text()) for path in ROOT.glob("results/**/versions.json")]
    assert len(found) > 10
    assert not any(versions.get("dirty") for versions in found)


def test_every_block_is_used_and_every_comment_closed() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    opened = re.findall(r"^<!-- results: (.*) -->$", text, re.MULTILINE)
    assert set(opened) == set(make_results.BLOCKS)
    assert opened == make_results.MARKED.findall(text)
