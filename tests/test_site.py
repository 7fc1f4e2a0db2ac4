"""The documentation site that `make docs` built: complete, offline, and readable in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Browser, open_browser

from langevinrl.cli import VERBS
from langevinrl.registry import METHODS

DOCS = Path(__file__).parent.parent / "docs"
MAIN_PAGES = ("index", "start", "methods/nclql", "hyperparameters", "benchmarks", "bandit")


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, built by `make docs`; building takes too long for a test."""
    built = DOCS / "_build" / "html"
    index = built / "index.html"
    newest = max(path.stat().st_mtime for path in DOCS.rglob("*.md") if "_gen" not in str(path))
    if not index.exists() or (built / "searchindex.js").stat().st_mtime < newest:
        pytest.skip("the site is not built, or older than a page: run `make docs`")
    return built


class Fetches(HTMLParser):
    """Addresses elsewhere that a page loads; links to click do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            fetches = name in ("src", "srcset") or (tag == "link" and name == "href")
            if fetches and value and re.match(r"(https?:)?//", value):
                self.addresses.append(value)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        reader = Fetches()
        reader.feed(page.read_text())
        assert reader.addresses == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text()), sheet


@pytest.mark.parametrize("name", METHODS)
def test_every_field_of_a_method_is_in_the_table(site: Path, name: str) -> None:
    table = (site / "hyperparameters.html").read_text()
    for field in fields(METHODS[name].load()):
        assert field.name == "spec" or f">{field.name}</span>" in table, field.name
    page = (site / "methods" / f"{name}.html").read_text()
    assert "<math" in page and "merror" not in page


def test_every_verb_has_its_help(site: Path) -> None:
    text = (site / "command-line.html").read_text()
    for verb in VERBS:
        assert f'id="{verb}"' in text and f"langevinrl {verb}" in text


@pytest.fixture(scope="module")
def browser(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(site / "index.html", tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("page", MAIN_PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_and_fits(site: Path, browser: Browser, page: str, width: int) -> None:
    browser.resize(width, 800, "dark" if width == 390 else "light")
    browser.open(site / f"{page}.html")
    browser.wait_for("document.querySelector('h1') !== null")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert browser.ask(broken) == []
