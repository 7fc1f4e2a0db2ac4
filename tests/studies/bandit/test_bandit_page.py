"""The bandit's page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, open_browser
from study_folder import write_study

from langevinrl.studies.bandit.page import write_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_page(write_study(tmp_path_factory.mktemp("study") / "bandit"))
    assert path is not None
    return path


@pytest.fixture
def browser(page: Path, tmp_path: Path) -> Iterator[Browser]:
    with open_browser(page, tmp_path / "profile") as opened:
        yield opened


def picture(browser: Browser) -> str:
    return str(browser.ask("document.getElementById('view').toDataURL()"))


def test_page_loads_nothing_from_other_places(page: Path) -> None:
    text = page.read_text()
    assert "http://" not in text and "https://" not in text and "import " not in text
    assert "/*DATA*/" not in text
    assert page.stat().st_size < 1_000_000


def test_moving_either_slider_changes_the_picture(browser: Browser) -> None:
    start = picture(browser)
    browser.press("step", "ArrowRight", times=3)
    assert browser.text("stepText") == "3 of 10"
    later = picture(browser)
    assert later != start
    browser.press("w", "Home")
    assert browser.text("wText") == "1"
    assert picture(browser) != later
    browser.press("step", "Home")
    browser.press("w", "End")
    assert picture(browser) == start


def test_numbers_follow_the_chains(browser: Browser) -> None:
    before = float(browser.text("reward"))
    assert browser.text("level") == "level 1, σ = 0.80"
    browser.press("step", "End")
    assert browser.text("share") == "100.0 %"
    assert browser.text("level") == "clean value"
    assert float(browser.text("reward")) > max(0.9, before)


def test_other_method_shows_its_own_landscape(browser: Browser) -> None:
    first = picture(browser)
    browser.ask("document.querySelector('[data-name=lql]').click()")
    assert picture(browser) != first
    assert browser.text("level") == "clean value"


def test_play_runs_to_the_end_and_stops(browser: Browser) -> None:
    browser.press("step", "ArrowRight", times=8)
    browser.ask("document.getElementById('play').click()")
    assert browser.text("play") == "Pause"
    browser.wait_for("document.getElementById('play').textContent === 'Play'")
    assert browser.text("stepText") == "10 of 10"


def test_page_has_light_and_dark_colours(browser: Browser) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.call("Emulation.setEmulatedMedia", features=[feature])
        colours.add(browser.ask("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
