"""Imports point one way, every room has its doors written down, and files stay short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "langevinrl"
FILES = sorted(ROOT.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]

WORDS = {"types", "errors"}  # that all rooms share
MATHS = {"networks", "samplers", "losses", "learner", "mixture"}
# What each room may import of the package.  A folder stands for all in it; `room.file` opens one
# file of it only.
DOORS: dict[str, set[str]] = {
    "types": set(),
    "errors": set(),
    "registry": set(),
    "samplers": {"types"},
    "networks": {"types"},
    "mixture": {"types"},
    "learner": {"types"},
    "losses": {"types", "samplers"},
    "actors": {"types", "networks", "samplers", "losses"},
    "agents": WORDS | MATHS | {"actors"},
    "envs": WORDS,
    "storage": WORDS,
    "replay": WORDS,
    "logs": WORDS | {"agents", "envs", "storage"},
    "runs": WORDS | {"learner", "registry", "agents", "envs", "storage", "replay", "logs"},
    "analysis": {"errors", "registry", "runs.config"}
    | {"storage.folder", "storage.files", "storage.run_log"},
    "export": WORDS | {"agents", "envs", "runs.saved", "storage.files"},
    "sweeps": WORDS | {"registry", "envs", "storage", "replay", "logs", "runs"},
    "studies": WORDS
    | {"registry", "agents", "envs", "storage", "runs", "sweeps", "analysis", "bench"}
    | {"samplers", "learner"},
    "bench": WORDS
    | MATHS
    | {"registry", "agents", "envs", "storage", "runs", "analysis", "export", "model"},
    "callbacks": WORDS | {"storage", "runs"},
    "model": WORDS | {"registry", "envs", "storage", "runs", "callbacks"},
    "cli": WORDS
    | {"registry", "agents", "storage", "logs", "runs", "sweeps", "analysis", "studies", "bench"}
    | {"model", "export", "__init__"},
    "__init__": WORDS
    | {"registry", "agents", "envs", "storage", "runs", "sweeps", "analysis", "model"}
    | {"callbacks", "samplers"},
    "__main__": {"cli"},
}
# Disk below their own room's others: these see nothing of it but what is named.
INSIDE: dict[str, set[str]] = {
    "storage.folder": {"errors", "storage.files"},
    "storage.files": {"errors"},
    "storage.trust": {"errors", "storage.files", "storage.folder"},
    "storage.locks": {"errors", "storage.files"},
    "storage.reserve": {"errors", "storage.files", "storage.folder", "storage.locks"},
    "storage.run_log": {"errors", "storage.files", "storage.folder", "storage.manifest"},
    "storage.metadata": {"errors"},
    "storage.cache": {"storage.files"},
    "storage.versions": set(),
    "storage.arrays": {"errors", "storage.files"},
    "storage.manifest": {"errors", "storage.files", "storage.folder"},
    "storage.checkpoint": WORDS
    | {"storage.folder", "storage.files", "storage.arrays", "storage.manifest"},
    "replay.memory": set(),
    "replay.final_obs": {"errors"},
    "replay.n_step": {"errors", "replay.buffer"},  # the ring it reads, by its type alone
    "logs.console": set(),
    "logs.progress": {"logs.console"},
    "logs.episodes": set(),
    "logs.diagnose": {"types", "agents"},
    "logs.video": {"errors", "envs", "logs.progress"},
    "logs.trackers": {"errors", "storage.folder", "storage.files"},
    "runs.checks": set(),
    "runs.env_kwargs": {"errors"},
    "runs.config": WORDS
    | {"registry", "agents", "runs.env_kwargs", "storage.files", "storage.trust"}
    | {"runs.checks", "runs.presets"},
    "runs.presets": {"errors"},
    "runs.finite": WORDS | {"storage.files", "storage.folder"},
    "runs.compiled": {"types", "agents", "logs.diagnose"},
    "agents.contract": {"types"},
    "export.numpy_policy": set(),  # is copied out of the package and runs alone
    "agents.parts": WORDS | MATHS | {"actors"},
}
# The bandit study's own files, from the bottom up: each imports only of those before it.
BANDIT = (
    "env", "settings", "training", "measure", "chains", "values", "scores", "sweep", "table",
    "files", "maps", "figures", "page", "study",
)  # fmt: skip
SHOWN_FROM_FILES = {"files", "maps", "figures", "page"}  # these see nothing that needs JAX


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(path: Path) -> set[str]:
    """The package's modules a file imports, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "langevinrl":
            inner = (node.module or "").removeprefix("langevinrl").removeprefix(".")
            for alias in node.names:
                full = ".".join(part for part in (inner, alias.name) if part)
                place = ROOT / full.replace(".", "/")
                is_module = place.is_dir() or place.with_suffix(".py").exists()
                found.add(full if is_module else inner or "__init__")
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {n.removeprefix("langevinrl.") for n in names if n.startswith("langevinrl.")}
    return found


def is_open(module: str, doors: set[str]) -> bool:
    return any(module == door or module.startswith(f"{door}.") for door in doors)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_doors_open_one_way(path: Path) -> None:
    module = module_of(path)
    room = module.split(".")[0]
    doors = INSIDE.get(module, DOORS[room] | {room})
    closed = {other for other in imports_of(path) if not is_open(other, doors)}
    assert not closed, f"{module} may not import {closed}"


def test_the_plan_names_every_room_and_no_other() -> None:
    assert {module_of(path).split(".")[0] for path in FILES} | {"__init__"} == set(DOORS)
    assert set(INSIDE) <= {module_of(path) for path in FILES}


def test_the_plan_has_no_circle() -> None:
    """Rooms can be put in an order in which each sees only those before it."""
    left = {room: {door.split(".")[0] for door in doors} for room, doors in DOORS.items()}
    while left:
        ready = [room for room, doors in left.items() if not doors & left.keys() - {room}]
        assert ready, left
        left = {room: doors for room, doors in left.items() if room not in ready}


def test_every_file_of_the_bandit_study_is_in_its_plan() -> None:
    names = {path.stem for path in (ROOT / "studies" / "bandit").glob("*.py")}
    assert names == {"__init__", *BANDIT}


@pytest.mark.parametrize("name", BANDIT)
def test_the_bandit_study_is_built_from_the_bottom_up(name: str) -> None:
    prefix = "studies.bandit."
    used = imports_of(ROOT / "studies" / "bandit" / f"{name}.py")
    below = SHOWN_FROM_FILES if name in SHOWN_FROM_FILES else set(BANDIT)
    inside = {module.removeprefix(prefix) for module in used if module.startswith(prefix)}
    assert inside <= below & set(BANDIT[: BANDIT.index(name)])
    if name in SHOWN_FROM_FILES:
        assert all(is_open(m, {"studies.bandit", "analysis", "registry"}) for m in used)


@pytest.mark.parametrize("path", sorted((ROOT / "agents").glob("*.py")), ids=lambda p: p.stem)
def test_an_agent_fits_on_its_page_and_has_one_base(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 170
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            assert len(node.bases) <= 1
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            assert bases <= {"Common", "NamedTuple", "Protocol"}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 40, node.name


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nothing_is_pickled_patched_or_made_of_strings(path: Path) -> None:
    text = path.read_text()
    for word in ("pickle", "dill", "unittest", "make_dataclass", "tokenize"):
        assert f"import {word}" not in text and f"from {word}" not in text
    assert "allow_pickle=True" not in text


def test_the_picture_shows_every_room_above_those_it_imports() -> None:
    picture = (ROOT.parent.parent / "docs" / "doors.svg").read_text()
    height = {name: int(y) for y, name in re.findall(r'y="(\d+)" class="name">(\w+)<', picture)}
    assert set(height) == {room for room in DOORS if not room.startswith("__")}
    for room, doors in DOORS.items():
        below = {door.split(".")[0] for door in doors} - {room}
        assert all(
            height[other] > height[room] for other in below & height.keys() if room in height
        )
