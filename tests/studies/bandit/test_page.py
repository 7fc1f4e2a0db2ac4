"""The bandit's page in a real browser: sliders change the picture, and nothing is complained of."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_folder import write_study

from langevinrl.studies.bandit.page import write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,800", "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """A headless Chromium on one page, spoken to over a pair of pipes."""

    def __init__(self, page: Path, profile: Path) -> None:
        read_end, self.outgoing = os.pipe()
        self.incoming, write_end = os.pipe()
        assert CHROMIUM is not None
        # The browser expects commands on descriptor 3 and answers on 4.
        line = f'exec "$0" "$@" 3<&{read_end} 4>&{write_end}'
        words = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            ["bash", "-c", line, *words],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        self.count, self.buffer, self.complaints = 0, b"", list[str]()
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("document.readyState === 'complete'")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        command: dict[str, Any] = {"id": self.count, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.count:
                assert "error" not in message, message
                return dict(message["result"])
            self.listen(message)

    def read(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            chunk = os.read(self.incoming, 1 << 16)
            assert chunk, "the browser closed its pipe"
            self.buffer += chunk
        first, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(first))

    def listen(self, message: dict[str, Any]) -> None:
        """Keep what a user would see in red in the console."""
        event, params = message.get("method"), message.get("params", {})
        wrong = event == "Runtime.exceptionThrown"
        wrong |= event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning")
        wrong |= event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning")
        if wrong:
            self.complaints.append(json.dumps(params))

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.ask(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.05)

    def press(self, element: str, key: str, times: int = 1) -> None:
        """Move the focus to an element and press a key on it, as a user would."""
        self.ask(f"document.getElementById('{element}').focus()")
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                          windowsVirtualKeyCode=codes[key])  # fmt: skip

    def picture(self) -> str:
        return str(self.ask("document.getElementById('view').toDataURL()"))

    def text(self, element: str) -> str:
        return str(self.ask(f"document.getElementById('{element}').textContent"))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        os.close(self.outgoing)
        os.close(self.incoming)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_page(write_study(tmp_path_factory.mktemp("study") / "bandit"))
    assert path is not None
    return path


@pytest.fixture
def browser(page: Path, tmp_path: Path) -> Iterator[Browser]:
    if CHROMIUM is None:
        reason = "no Chromium on this machine: the page is not tried (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    opened = Browser(page, tmp_path / "profile")
    yield opened
    opened.close()
    assert opened.complaints == []


def test_the_page_needs_nothing_from_outside(page: Path) -> None:
    text = page.read_text()
    assert "http://" not in text and "https://" not in text and "import " not in text
    assert "/*DATA*/" not in text
    assert page.stat().st_size < 1_000_000


def test_moving_either_slider_changes_the_picture(browser: Browser) -> None:
    start = browser.picture()
    browser.press("step", "ArrowRight", times=3)
    assert browser.text("stepText") == "3 of 10"
    later = browser.picture()
    assert later != start
    browser.press("w", "Home")
    assert browser.text("wText") == "1"
    assert browser.picture() != later
    browser.press("step", "Home")
    browser.press("w", "End")
    assert browser.picture() == start


def test_the_readings_follow_the_chains(browser: Browser) -> None:
    before = float(browser.text("reward"))
    assert browser.text("level") == "level 1, σ = 0.80"
    browser.press("step", "End")
    assert browser.text("share") == "100.0 %"
    assert browser.text("level") == "clean value"
    assert float(browser.text("reward")) > max(0.9, before)


def test_the_other_method_has_its_own_landscape(browser: Browser) -> None:
    first = browser.picture()
    browser.ask("document.querySelector('[data-name=lql]').click()")
    assert browser.picture() != first
    assert browser.text("level") == "clean value"


def test_play_runs_to_the_end_and_stops(browser: Browser) -> None:
    browser.press("step", "ArrowRight", times=8)
    browser.ask("document.getElementById('play').click()")
    assert browser.text("play") == "Pause"
    browser.wait_for("document.getElementById('play').textContent === 'Play'")
    assert browser.text("stepText") == "10 of 10"


def test_it_follows_the_readers_choice_of_light_or_dark(browser: Browser) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.call("Emulation.setEmulatedMedia", features=[feature])
        colours.add(browser.ask("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
