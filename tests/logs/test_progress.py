"""Tests of the progress line: its words, narrow terminals, other outputs and quiet runs."""

from __future__ import annotations

import io
import os
import sys
import time

import pytest
from rich.console import Console

from langevinrl.logs import progress
from langevinrl.logs.console import use_plain_letters
from langevinrl.logs.progress import ProgressLine, time_left


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_per_minute_and_per_evaluation(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    line = ProgressLine("lql Hopper-v4", total=1000, start=0)
    for second in range(0, 130):
        clock[0] = float(second)
        line.warmup(second, 1000)
    for second in range(130, 260):
        clock[0] = float(second)
        line.advance(second - 129)
    line.evaluation(130, 12.34, 0.5)
    line.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "lql Hopper-v4  0/1000  warm-up 60/1000",
        "lql Hopper-v4  0/1000  warm-up 120/1000",
        "lql Hopper-v4  51/1000  1.0 it/s  15.8 min left",
        "lql Hopper-v4  111/1000  1.0 it/s  14.8 min left",
        "lql Hopper-v4  130/1000  1.0 it/s  14.5 min left  return 12.3 ± 0.5",
    ]


@pytest.mark.parametrize(
    ("width", "kept", "gone"),
    [
        (120, ["nclql HalfCheetah-v5", "it/s", "return 5000.0 ± 250.0", "━"], []),
        (80, ["nclql HalfCheetah-v5", "return 5000.0"], ["━", "it/s"]),
        (60, ["nclql HalfCheetah-v5"], ["return", "it/s"]),
        (38, [], ["nclql"]),
    ],
)
def test_a_narrow_terminal_drops_the_bar_first_and_keeps_total_and_time_left(
    width: int, kept: list[str], gone: list[str], clock: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    terminal = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    line = ProgressLine("nclql HalfCheetah-v5", total=1_000_000, start=0)
    line.advance(100)
    clock[0] = 10.0
    line.advance(123_456)
    line.evaluation(123_456, 5000.0, 250.0)
    page = Console(file=io.StringIO(), width=width, record=True)
    page.print(line.render())
    said = page.export_text()
    line.close()
    for words in ["123456/1000000", "1.2 min left", *kept]:
        assert words in said
    for words in [*gone, "…"]:
        assert words not in said


def test_markup_is_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("lql [/x]:Env", total=10, start=0)
    line.say("runs/[/x] [red] :smile:")
    line.evaluation(1, 0.0, 0.0)
    line.close()
    assert capsys.readouterr().out.splitlines() == [
        "runs/[/x] [red] :smile:",
        "lql [/x]:Env  1/10  return 0.0 ± 0.0",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(42, "42 s left"), (78, "1.3 min left"), (7_500, "2 h 05 min left"), (3e5, "3.5 days left")],
)
def test_time_left_in_words(seconds: float, words: str) -> None:
    assert time_left(seconds) == words


def print_lines(quiet: bool = False) -> None:
    line = ProgressLine("lql Hopper-v4", total=10, start=0, quiet=quiet)
    for iteration in range(3):
        line.evaluation(iteration, 1.0, 0.5)
    line.close()


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(quiet=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("console", ["closed pipe", "full device", "closed stream"])
def test_a_lost_console_is_reported_once_and_raises_nothing(
    console: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if console == "full device":
        lost = open("/dev/full", "w")
    else:
        reader, writer = os.pipe()
        os.close(reader)
        lost = os.fdopen(writer, "w")
    if console == "closed stream":
        lost.close()
    monkeypatch.setattr(sys, "stdout", lost)
    print_lines()
    lost.close()  # writes what is left, as Python does when it exits
    assert capsys.readouterr().err.count("the run goes on without progress") == 1


def test_an_ascii_console_gets_plain_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    print_lines()
    use_plain_letters()
    print("γ = 0.99, Grüße", flush=True)
    first, *_, last = written.getvalue().splitlines()
    assert first == b"lql Hopper-v4  0/10  return 1.0 +/- 0.5"
    assert last == rb"gamma = 0.99, Gr\xfc\xdfe"
