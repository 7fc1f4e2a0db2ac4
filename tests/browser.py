"""Headless Chromium for tests of pages, controlled through two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,800", "--remote-debugging-pipe",
]  # fmt: skip
KEYS = {
    "ArrowRight": ("ArrowRight", 39), "ArrowLeft": ("ArrowLeft", 37), "End": ("End", 35),
    "Home": ("Home", 36), "Tab": ("Tab", 9), "Enter": ("Enter", 13), " ": ("Space", 32),
    "Escape": ("Escape", 27),
}  # fmt: skip


class Browser:
    """A headless Chromium with one page."""

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
        self.open(page)

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
        """Record errors and warnings of the console."""
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
        """Focus an element and press a key."""
        self.ask(f"document.getElementById('{element}').focus()")
        self.type_key(key, times)

    def type_key(self, key: str, times: int = 1) -> None:
        """Press a key on the focused element."""
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=KEYS[key][0],
                          windowsVirtualKeyCode=KEYS[key][1], **text)  # fmt: skip

    def point_at(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Set the window's size and the preferred colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, page: Path) -> None:
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for(f"location.href === {json.dumps(page.as_uri())} && "
                      "document.readyState === 'complete'")  # fmt: skip

    def text(self, element: str) -> str:
        return str(self.ask(f"document.getElementById('{element}').textContent"))

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Save the window, or the whole page, as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        os.close(self.outgoing)
        os.close(self.incoming)


@contextmanager
def open_browser(page: Path, profile: Path) -> Iterator[Browser]:
    """Open a page and check that the console stays clean; skip if there is no Chromium."""
    if CHROMIUM is None:
        reason = "Chromium is not installed: the page is not tested (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    opened = Browser(page, profile)
    try:
        yield opened
    finally:
        opened.close()
    assert opened.complaints == []
