"""Imports point one way, and no agent outgrows its page."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "langevinrl"
FILES = sorted(ROOT.rglob("*.py"))

# What each room may import of the package; a folder stands for all in it.
DOORS = {
    "errors": set[str](),
    "types": set[str](),
    "networks": {"types"},
    "samplers": {"types", "samplers"},
    "mixture": {"types"},
    "losses": {"types", "samplers"},
    "learner": {"types"},
    "actors": {"types", "networks", "samplers", "losses"},
    "agents": {
        "types", "errors", "networks", "samplers", "mixture", "losses", "learner", "actors",
        "agents",
    },
    "envs": {"types", "errors", "envs"},
    "replay": {"types", "errors"},
    "report": {"errors"},
    "checkpoint": {"types", "errors"},
}  # fmt: skip


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langevinrl"):
            inner = (node.module or "").split(".")[1:]
            names = inner[:1] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name.split(".")[1] for a in node.names if a.name.startswith("langevinrl.")]
        found.update(names)
    return found


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in DOORS], ids=lambda p: p.stem)
def test_doors_open_one_way(path: Path) -> None:
    assert imports_of(path) <= DOORS[room_of(path)]


def test_every_room_below_the_loop_has_its_doors_written_down() -> None:
    above = {"__init__", "__main__", "model", "config", "train", "evaluate", "runlog", "bench"}
    rooms = {room_of(path) for path in FILES if not room_of(path).startswith("bandit")}
    assert rooms - above <= set(DOORS)


@pytest.mark.parametrize("path", sorted((ROOT / "agents").glob("*.py")), ids=lambda p: p.stem)
def test_an_agent_fits_on_its_page(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 150


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nothing_is_pickled(path: Path) -> None:
    text = path.read_text()
    assert "import pickle" not in text
    assert "allow_pickle=True" not in text
