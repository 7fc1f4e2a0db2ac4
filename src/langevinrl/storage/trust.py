"""Which names of a file may be followed.  Needs no JAX.

Importing a module runs its code, so that a folder from someone else could run anything by naming
it.  A name that a file holds is therefore a Gymnasium id of an installed package, or it is one
that this user has trained with before, or the user says `trust`.

What the user has trained with is recorded in the user's state folder: each name with its arguments
and the file that its module was.  Not in the folder of the run, for whoever sends that could write
a record too; and not by the folder's place, so that a run may be moved and copied.  A stranger's
folder can then have run what its reader has run already, from the same file, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError, field, in_command_line
from langevinrl.storage.files import read_json, user_folder, write_text
from langevinrl.storage.folder import CHECKPOINTS, CONFIG, SWEEP, VERSIONS

VARIABLE = "LANGEVINRL_STATE"  # where records are kept; without it, in the user's state folder
# Written into configurations by our own studies and timings.
OURS = ("langevinrl.studies.bandit.env:make", "langevinrl.bench.latency:half_cheetah")
# Gymnasium's and Shimmy's ids that make what an argument names, by a registry of its own.
_DOORS_ELSEWHERE = re.compile(r"GymV2\d|.*compatib", re.IGNORECASE)
# module:name, as an environment or an agent of one's own is given.
MODULE_NAME = re.compile(r"[\w.]+:[\w.<>-]+")
_remembered: dict[str, list[list[str]]] = {}  # of this process, where nothing can be written


def importing_names(agent: str, env: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """What a run of these would import by name; nothing for registered agents and tasks."""
    found = [f"agent {agent}"] if ":" in agent else []
    texts = list(_texts(env_kwargs))
    foreign = ":" in env and not (env in OURS and not texts)
    if foreign or _DOORS_ELSEWHERE.match(env) or any(map(MODULE_NAME.fullmatch, texts)):
        beside = f" {json.dumps(env_kwargs, sort_keys=True, default=str)}" if env_kwargs else ""
        found.append(f"env {env}{beside}")
    return found


def _texts(value: Any) -> Iterable[str]:
    """Every text in a value that JSON can hold."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def require_trusted(place: Path, names: Iterable[str], trust: bool = False) -> None:
    """Refuses to follow names that a file holds, unless trusted or trained with before.

    `place` is the folder of a run, a model or a sweep, or a file that configures some.
    """
    names = list(names)
    for name in names:
        require_outside(place, _word(name))
        if not trust and not is_remembered(name):
            what = "environment" if name.startswith("env ") else "agent"
            own = f", or name your own with {field('env')}" if what == "environment" else ""
            raise UserError(
                f"{place} names the {what} {_word(name)!r}, which would be imported and called, "
                "and you have not trained with it before: whoever sent it could run anything so. "
                f"If you know it, say so with {field('trust', True)}{own}"
            )
    if trust:
        remember(names)  # so that it is asked once
    if names and in_command_line():
        search_here()


def require_outside(place: Path, name: str) -> None:
    """Refuses `module:name` whose module lies in the folder: a run's folder is never imported from.

    Finding where a module lies imports nothing.
    """
    if not place.is_dir() and not _holds_a_run(place.parent):
        return  # a file beside its author's modules
    inside = (place if place.is_dir() else place.parent).resolve()
    if any(Path(found).is_relative_to(inside) for found in _files_of(name)):
        raise UserError(
            f"{name!r} would be imported from inside {place}, which is never done: a folder "
            "that is sent around could run anything so. Move the module elsewhere"
        )


def _word(name: str) -> str:
    """The name itself, as a configuration has it."""
    return name.partition(" ")[2].partition(" {")[0]


def _files_of(name: str) -> list[str]:
    """Where the package of `module:name` lies: its file, or its folders; nothing if not found."""
    module = name.rpartition(":")[0].split(".")[0]
    try:
        spec = find_spec(module) if module else None
    except (ImportError, ValueError):  # __main__, and what is no name
        return []
    if spec is None and module and in_command_line():  # which looks here last
        spec = PathFinder.find_spec(module, [str(Path.cwd())])
    if spec is None:
        return []
    places = [spec.origin or "", *(spec.submodule_search_locations or [])]
    return sorted({str(Path(place).resolve()) for place in places if os.path.isabs(place)})


def remember(names: Iterable[str]) -> None:
    """Record that this user trains with these names, if there is a place for that."""
    for name in names:
        known = _remembered.setdefault(name, _recorded(name))
        files = _files_of(_word(name))
        if files in known:
            continue
        known.append(files)
        record = _record_of(name)
        if record is None:
            continue
        try:
            record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_text(record, json.dumps({"name": name, "files": known}) + "\n")
        except (OSError, UserError):  # a home that cannot be written to: resuming asks for `trust`
            continue


def made_by_us(folder: Path) -> str:
    """The name under which it is recorded that this user made a folder."""
    return f"folder {folder.resolve()}"


def is_remembered(name: str) -> bool:
    """Whether this user has trained with that name, from the file it stands for now."""
    known = [*_remembered.get(name, ()), *_recorded(name)]
    return _files_of(_word(name)) in known


def _recorded(name: str) -> list[list[str]]:
    """The files that a name has been, as recorded; none if there is no record, or a damaged one."""
    record = _record_of(name)
    if record is None or not record.is_file():
        return []
    try:
        table = read_json(record, "a record")
        return list(table["files"]) if table["name"] == name else []
    except (UserError, KeyError, TypeError):
        return []


def _record_of(name: str) -> Path | None:
    place = state_folder()
    return place and place / "trained" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def state_folder() -> Path | None:
    """$LANGEVINRL_STATE, $XDG_STATE_HOME/langevinrl or ~/.local/state/langevinrl; None if none."""
    return user_folder(VARIABLE, "XDG_STATE_HOME", ".local/state")


def search_here() -> None:
    """Let modules be found in the current folder, after all others; not in the folder of a run."""
    here = Path.cwd()
    if "" in sys.path or any(map(_holds_a_run, (here, *here.parents))):
        return
    sys.path.append("")


def _holds_a_run(path: Path) -> bool:
    made = (path / CHECKPOINTS).exists() or (path / VERSIONS).exists()
    return ((path / CONFIG).exists() and made) or (path / SWEEP).exists()
