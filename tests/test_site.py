"""The documentation site: built with warnings as errors, complete, and opened in a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Browser, open_browser

from langevinrl.cli import VERBS
from langevinrl.registry import METHODS

pytest.importorskip("sphinx")
pytest.importorskip("furo")
DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built afresh, in a place that no other process builds in."""
    out = tmp_path_factory.mktemp("site")
    words = ["-W", "--keep-going", "-q", "-d", out / "doctrees", DOCS, out / "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


class Outside(HTMLParser):
    """What a page would fetch from elsewhere; links that a reader may click do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            fetches = name in ("src", "srcset") or (tag == "link" and name == "href")
            if fetches and value and re.match(r"(https?:)?//", value):
                self.fetched.append(value)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        reader = Outside()
        reader.feed(page.read_text())
        assert reader.fetched == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text()), sheet


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_all_of_its_fields_on_its_page(site: Path, name: str) -> None:
    from dataclasses import fields

    text = (site / "methods" / f"{name}.html").read_text()
    for field in fields(METHODS[name].load()):
        assert field.name == "spec" or f">{field.name}</span>" in text, field.name
    assert "<math" in text and "merror" not in text


def test_every_verb_has_its_help(site: Path) -> None:
    text = (site / "command-line.html").read_text()
    for verb in VERBS:
        assert f'id="{verb}"' in text and f"langevinrl {verb}" in text


@pytest.fixture(scope="module")
def browser(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(site / "index.html", tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("page", ["index.html", "methods/nclql.html", "pictures.html"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_opens_and_fits(site: Path, browser: Browser, page: str, width: int) -> None:
    """Without a word in the console (the fixture sees to it), and without sideways scrolling."""
    browser.resize(width, 800, "dark" if width == 390 else "light")
    browser.open(site / page)
    browser.wait_for("document.querySelector('h1') !== null")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert browser.ask(broken) == []
