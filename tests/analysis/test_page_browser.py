"""The report in a real browser, wide and narrow, light and dark, by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, open_browser
from folders import make_run, make_runs

from langevinrl import cli
from langevinrl.analysis.paper import TASKS
from langevinrl.registry import METHODS

HOSTILE = '</script><img src=x onerror="window.hacked=1">'
SIZES = [(1280, 900, "light"), (390, 844, "dark")]
DRAWN = "document.querySelectorAll('[data-task=\"Hopper-v4\"] path.mean').length"
X_LABEL = "document.querySelector('[data-task=\"Hopper-v4\"] .x-label').textContent"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods on three tasks, one with a hostile name; a setting varies, a run was cut."""
    root = tmp_path_factory.mktemp("runs")
    how: dict[str, Any] = {"seeds": range(3), "points": 10, "every": 1_000, "episodes": 1}
    for number, env in enumerate(("Hopper-v4", "Reacher-v4", HOSTILE)):
        here = root / f"task-{number}"
        make_run(here / "sac", "sac", env, note=HOSTILE, **how)
        make_run(here / "dacer", "dacer", env, **how)
        for steps in (5, 20):
            make_run(here / f"lql-{steps}", "lql", env, num_steps=steps, note=HOSTILE, **how)
    cut = how | {"seeds": [3], "points": 8, "planned": 10}
    make_run(root / "cut", "sac", note=HOSTILE, dirty=True, **cut)
    (root / "time.csv").write_text(f"method,ms_per_update,ratio,paper\n{HOSTILE},44.10,0.9,\n")
    return root


@pytest.fixture(scope="module")
def page(runs: Path) -> Path:
    cli.main(["report", str(runs), "--out", str(runs / "page.html"), "--no-figures"])
    return runs / "page.html"


@pytest.fixture(scope="module")
def shared(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(page, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def browser(shared: Browser, page: Path) -> Browser:
    show(shared, page, 1280, 900)
    return shared


def show(browser: Browser, page: Path, width: int, height: int, scheme: str = "light") -> None:
    browser.resize(width, height, scheme)
    browser.ask("window.reportReadyMs = undefined")
    browser.open(page)
    browser.wait_for("window.reportReadyMs > 0")


def see(browser: Browser, selector: str) -> list[float]:
    """Scroll to an element and wait until it is drawn; its left, top, width and height."""
    found = f"document.querySelector({json.dumps(selector)})"
    browser.ask(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    browser.wait_for(f"{found}.querySelector('svg') !== null")
    box = f"(({{x, y, width, height}}) => [x, y, width, height])({found}.getBoundingClientRect())"
    return list(browser.ask(box))


def click(browser: Browser, selector: str) -> None:
    browser.ask(f"document.querySelector({json.dumps(selector)}).click()")


@pytest.mark.parametrize(("width", "height", "scheme"), SIZES)
def test_everything_is_drawn_within_the_window(
    shared: Browser, page: Path, width: int, height: int, scheme: str
) -> None:
    show(shared, page, width, height, scheme)
    for figure in range(shared.ask("document.querySelectorAll('figure').length")):
        shared.ask(f"document.querySelectorAll('figure')[{figure}].id ||= 'figure-{figure}'")
        see(shared, f"#figure-{figure}")
    shared.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    click(shared, "#open-choices")
    assert shared.ask("document.documentElement.scrollWidth") <= width
    if width < 500:  # no table has to be scrolled sideways on a phone
        click(shared, "#run-kind [data-key=all]")
        wide = (
            "[...document.querySelectorAll('.scroll')].filter((x) => x.scrollWidth > x.clientWidth)"
        )
        assert shared.ask(f"{wide}.map((x) => x.ariaLabel)") == []
    assert shared.ask(DRAWN) == 4
    ink, ground = (
        shared.ask(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    bright = [sum(map(int, text[4:-1].split(","))) for text in (ink, ground)]
    assert (bright[0] > bright[1]) == (scheme == "dark")
    # DACER is black in print: on a dark card it has to be light.
    black = shared.ask(
        "document.querySelector('[data-method=\"3\"] .swatch path').getAttribute('fill')"
    )
    assert (black == "#000000") == (scheme == "light")


def test_hostile_name_is_shown_and_not_run(browser: Browser) -> None:
    assert browser.ask("window.hacked") is None
    assert HOSTILE in browser.ask("document.getElementById('curves').textContent")
    browser.ask("document.querySelector('#run-kind [data-key=all]').click()")
    click(browser, ".run")
    assert browser.ask("document.getElementById('drawer').open") is True
    browser.type_key("Escape")
    assert browser.ask("document.getElementById('drawer').open") is False
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.ask("window.hacked") is None


def test_pointing_at_a_panel_shows_all_values(browser: Browser) -> None:
    x, y, width, height = see(browser, '[data-task="Hopper-v4"] .chart')
    tip = "document.querySelector('[data-task=\"Hopper-v4\"] .tip')"
    assert browser.ask(f"{tip}.hidden") is True
    browser.point_at(x + width * 0.6, y + height / 2)
    browser.wait_for(f"!{tip}.hidden")
    assert browser.ask(f"{tip}.querySelectorAll('.tip-row').length") == 4
    first = browser.ask(f"{tip}.textContent")
    browser.point_at(x + width * 0.8, y + height / 2)
    browser.wait_for(f"{tip}.textContent !== {json.dumps(first)}")
    browser.point_at(5, 5)
    browser.wait_for(f"{tip}.hidden")


def test_arrow_keys_show_values_too(browser: Browser) -> None:
    see(browser, '[data-task="Hopper-v4"] .chart')
    browser.ask("document.querySelector('[data-task=\"Hopper-v4\"] .chart').focus()")
    browser.type_key("Home")
    tip = "document.querySelector('[data-task=\"Hopper-v4\"] .tip b').textContent"
    assert browser.ask(tip) == "Iterations: 1,000"
    browser.type_key("ArrowRight", times=2)
    assert browser.ask(tip) == "Iterations: 3,000"


def test_axis_and_theme_can_be_switched(browser: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.ask(ground)
    click(browser, "#theme [data-key=dark]")
    assert browser.ask(ground) != light
    click(browser, "#theme [data-key=auto]")
    assert browser.ask(ground) == light
    see(browser, '[data-task="Hopper-v4"] .chart')
    assert browser.ask(X_LABEL) == "Iterations"
    click(browser, "#axis [data-key=hours]")
    assert browser.ask(X_LABEL) == "Hours"
    click(browser, "#axis [data-key=steps]")
    assert browser.ask(X_LABEL) == "Environment steps"
    assert "40k" in browser.ask(
        "document.querySelector('[data-task=\"Hopper-v4\"] .axes').textContent"
    )


def test_legend_works_by_keyboard(browser: Browser) -> None:
    see(browser, '[data-task="Hopper-v4"] .chart')
    # Tab goes on from the last click or scroll unless an element has the focus.
    browser.ask("document.querySelector('button, a, [tabindex]').focus()")
    focused = "document.activeElement.closest('#legend') !== null"
    for _ in range(8):
        browser.type_key("Tab")
        if browser.ask(focused):
            break
    assert browser.ask(focused)
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, pressed, drawn in ((" ", "false", 3), ("Enter", "true", 4)):
        browser.type_key(key)
        assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == pressed
        browser.wait_for(f"{DRAWN} === {drawn}")


def test_seed_band_and_single_seed_switches(browser: Browser) -> None:
    see(browser, '[data-task="Hopper-v4"] .chart')
    hopper = "document.querySelector('[data-task=\"Hopper-v4\"]')"
    ends = f"{hopper}.querySelector('svg').getAttribute('aria-label')"
    bands, thin = (f"{hopper}.querySelectorAll('.{name}').length" for name in ("band", "thin"))
    # SAC's fourth seed was cut at 8000, so its mean ends there until the seed is deselected.
    assert "at 8,000" in browser.ask(ends)
    assert (browser.ask(bands), browser.ask(thin)) == (4, 0)
    click(browser, "#seeds [data-key=s3]")
    assert "at 8,000" not in browser.ask(ends)
    click(browser, "#single button")
    assert browser.ask(thin) == 12
    click(browser, "#band [data-key=none]")
    assert browser.ask(bands) == 0


def test_means_ablations_metrics_and_times_are_shown(browser: Browser, runs: Path) -> None:
    rows = [line.split(",") for line in (runs / "task-0/dacer/evaluations.csv").read_text().split()]
    last = [float(row[6]) for row in rows[1:] if row[3] == "10000"]
    see(browser, '[data-task="Hopper-v4"] .chart')
    label = browser.ask("document.querySelector('[data-task=\"Hopper-v4\"] svg').ariaLabel")
    assert f"DACER {sum(last) / len(last):,.0f} at 10k" in label
    for part, least in (("metrics", 4), ("profiles", 1), ("improvement", 1), ("ablations", 2)):
        assert browser.ask(f"document.querySelectorAll('#{part} figure').length") >= least
    assert "44.10" in browser.ask("document.getElementById('costs').textContent")
    see(browser, "#ablations figure")
    assert "num_steps" in browser.ask("document.querySelector('#ablations svg').ariaLabel")


def test_runs_are_filtered(browser: Browser) -> None:
    rows = "document.querySelectorAll('#health tbody tr').length"
    assert browser.ask(rows) == 1  # the one with remarks
    text = browser.ask("document.querySelector('#health tbody').textContent")
    assert "cut short" in text and "uncommitted changes" in text
    click(browser, "#run-kind [data-key=all]")
    assert browser.ask(rows) == 13
    browser.ask("document.getElementById('run-filter').focus()")
    browser.call("Input.insertText", text="dacer reacher")
    assert browser.ask(rows) == 1


def test_shown_curves_can_be_saved(browser: Browser) -> None:
    """Files are made from blobs, which are caught here."""
    browser.ask("window.saved = []; URL.createObjectURL = (blob) => "
                "{ blob.text().then((text) => saved.push(text)); return 'data:,'; }")  # fmt: skip
    click(browser, "#seeds [data-key=s0]")
    click(browser, "#curves .saves button")
    browser.wait_for("saved.length === 1")
    lines = browser.ask("saved[0]").splitlines()
    assert lines[0] == "method,task,seed,iterations,env_steps,hours,return"
    assert len(lines) == 1 + 10 * 2 * 12 + 8 and not [x for x in lines if ",0,1000," in x]
    click(browser, "#curves figure button[aria-label*=SVG]")
    browser.wait_for("saved.length === 2")
    assert browser.ask("new DOMParser().parseFromString(saved[1], 'image/svg+xml')"
                       ".querySelectorAll('parsererror, path.mean').length") == 4  # fmt: skip


def test_page_of_all_methods_on_all_tasks_opens_within_two_seconds(
    shared: Browser, tmp_path: Path
) -> None:
    agents, tasks = list(METHODS)[:10], [f"{task}-v4" for task in TASKS]
    make_runs(tmp_path / "all", agents, tasks, seeds=1, episodes=1)
    page = tmp_path / "all.html"
    cli.main(["report", str(tmp_path / "all"), "--out", str(page), "--no-figures"])
    assert page.stat().st_size < 500_000
    show(shared, page, 1280, 900)
    assert shared.ask("window.reportReadyMs") < 2_000
    assert shared.ask("document.querySelectorAll('.panel').length") == 9
