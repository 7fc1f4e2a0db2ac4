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
    "compiled": {"types", "agents"},
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
    above = {
        "__init__", "__main__", "model", "config", "train", "evaluate", "runlog", "bench",
    }  # fmt: skip
    rooms = {room_of(path) for path in FILES} - {"bandit"}  # has a plan of its own, below
    assert rooms - above <= set(DOORS)


# The study's own rooms, from the bottom up: each imports only of those before it.
STUDY = (
    "settings", "training", "measure", "chains", "values", "sweep", "search", "table",
    "files", "maps", "figures", "page", "study",
)  # fmt: skip
SHOWN_FROM_FILES = {"files", "maps", "figures", "page"}  # these import nothing that needs JAX


def test_every_room_of_the_study_is_in_its_plan() -> None:
    rooms = {path.stem for path in (ROOT / "bandit").glob("*.py")}
    assert rooms == {"__init__", *STUDY}


@pytest.mark.parametrize("room", STUDY)
def test_the_study_is_built_from_the_bottom_up(room: str) -> None:
    used = study_imports_of(ROOT / "bandit" / f"{room}.py")
    below = SHOWN_FROM_FILES if room in SHOWN_FROM_FILES else set(STUDY)
    assert used <= below & set(STUDY[: STUDY.index(room)])


@pytest.mark.parametrize("room", sorted(SHOWN_FROM_FILES))
def test_what_is_shown_comes_from_files_alone(room: str) -> None:
    path = ROOT / "bandit" / f"{room}.py"
    assert imports_of(path) <= {"bandit", "report"}
    assert "jax" not in outside_imports_of(path)


def test_nothing_but_the_command_line_knows_the_study() -> None:
    users = {room_of(path) for path in FILES if "bandit" in imports_of(path)}
    assert users <= {"bandit", "__main__"}


def study_imports_of(path: Path) -> set[str]:
    """Which rooms of the study a file imports."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    names = [(node.module or "").split(".") for node in nodes]
    return {name[2] for name in names if name[:2] == ["langevinrl", "bandit"] and len(name) > 2}


def outside_imports_of(path: Path) -> set[str]:
    """The packages a file imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "agents").glob("*.py")), ids=lambda p: p.stem)
def test_an_agent_fits_on_its_page(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 150


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nothing_is_pickled(path: Path) -> None:
    text = path.read_text()
    assert "import pickle" not in text
    assert "allow_pickle=True" not in text
