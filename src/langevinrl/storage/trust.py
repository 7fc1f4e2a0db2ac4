"""Checks of the names in a file that would be imported.  Needs no JAX.

Importing a module runs its code, so a folder from someone else could run anything by naming a
module.  A name in a file is therefore imported only if it is a Gymnasium id of an installed
package, if this user has trained with it before, or if the user allows it with `trust`.

The names that a user has trained with are recorded in the user's state folder, each with its
arguments and the file of its module.  The run folder holds no such record, as its sender could
write one.  The record does not depend on the run's path, so that a run can be moved and copied.
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

VARIABLE = "LANGEVINRL_STATE"  # folder of the records; by default in the user's state folder
# Names that our own studies and timings write into configurations.
OURS = ("langevinrl.studies.bandit.env:make", "langevinrl.bench.latency:half_cheetah")
# Ids of Gymnasium and Shimmy that make an environment named by an argument.
_INDIRECT = re.compile(r"GymV2\d|.*compatib", re.IGNORECASE)
MODULE_NAME = re.compile(r"[\w.]+:[\w.<>-]+")  # module:name
_remembered: dict[str, list[list[str]]] = {}  # by this process


def importing_names(agent: str, env: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """Return the names that a run would import; none for registered agents and tasks."""
    found = [f"agent {agent}"] if ":" in agent else []
    texts = list(_texts(env_kwargs))
    foreign = ":" in env and not (env in OURS and not texts)
    if foreign or _INDIRECT.match(env) or any(map(MODULE_NAME.fullmatch, texts)):
        arguments = f" {json.dumps(env_kwargs, sort_keys=True, default=str)}" if env_kwargs else ""
        found.append(f"env {env}{arguments}")
    return found


def _texts(value: Any) -> Iterable[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def require_trusted(place: Path, names: Iterable[str], trust: bool = False) -> None:
    """Raise if a file names something to import that the user has not trained with before.

    place: the folder of a run, a model or a sweep, or a file that configures some
    trust: allow the names, now and later
    """
    names = list(names)
    for name in names:
        require_outside(place, _word(name))
        if not trust and not is_remembered(name):
            what = "environment" if name.startswith("env ") else "agent"
            own = f", or name your own with {field('env')}" if what == "environment" else ""
            raise UserError(
                f"{place} names the {what} {_word(name)!r}, which would be imported and called, "
                "and you have not trained with it before: its sender could run any code this way. "
                f"If you know it, allow it with {field('trust', True)}{own}"
            )
    if trust:
        remember(names)  # asked once only
    if names and in_command_line():
        search_here()


def require_outside(place: Path, name: str) -> None:
    """Raise if the module of `module:name` is inside the folder of a run.

    Finding a module's file imports nothing.
    """
    if not place.is_dir() and not _holds_a_run(place.parent):
        return  # a file next to its author's modules
    inside = (place if place.is_dir() else place.parent).resolve()
    if any(Path(found).is_relative_to(inside) for found in _files_of(name)):
        raise UserError(
            f"{name!r} would be imported from inside {place}, which is never done: the sender of a "
            "folder could run any code this way. Move the module elsewhere"
        )


def _word(name: str) -> str:
    """Return the name without its kind and its arguments."""
    return name.partition(" ")[2].partition(" {")[0]


def _files_of(name: str) -> list[str]:
    """Return the files or folders of the package of `module:name`; none if it is not found."""
    module = name.rpartition(":")[0].split(".")[0]
    try:
        spec = find_spec(module) if module else None
    except (ImportError, ValueError):  # __main__, or no valid name
        return []
    if spec is None and module and in_command_line():  # searches the current folder last
        spec = PathFinder.find_spec(module, [str(Path.cwd())])
    if spec is None:
        return []
    places = [spec.origin or "", *(spec.submodule_search_locations or [])]
    return sorted({str(Path(place).resolve()) for place in places if os.path.isabs(place)})


def remember(names: Iterable[str]) -> None:
    """Record that this user trains with these names, if there is a state folder."""
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
        except (OSError, UserError):  # not writable: resuming will ask for `trust`
            continue


def made_by_us(folder: Path) -> str:
    """Return the name that records that this user made a folder."""
    return f"folder {folder.resolve()}"


def is_remembered(name: str) -> bool:
    """Return whether this user has trained with the name, from the same file as now."""
    known = [*_remembered.get(name, ()), *_recorded(name)]
    return _files_of(_word(name)) in known


def _recorded(name: str) -> list[list[str]]:
    """Return the recorded files of a name; none if there is no record, or a damaged one."""
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
    """Return $LANGEVINRL_STATE, $XDG_STATE_HOME/langevinrl or ~/.local/state/langevinrl."""
    return user_folder(VARIABLE, "XDG_STATE_HOME", ".local/state")


def search_here() -> None:
    """Add the current folder to the end of the import path, unless it is in a run folder."""
    here = Path.cwd()
    if "" in sys.path or any(map(_holds_a_run, (here, *here.parents))):
        return
    sys.path.append("")


def _holds_a_run(path: Path) -> bool:
    made = (path / CHECKPOINTS).exists() or (path / VERSIONS).exists()
    return ((path / CONFIG).exists() and made) or (path / SWEEP).exists()
