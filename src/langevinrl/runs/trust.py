"""Which names of a file may be followed.  Needs no JAX.

Importing a module runs its code, so that a folder from someone else could run anything by naming
it.  A name that a file holds is therefore a Gymnasium id of an installed package, or it is one
that this user has used for the same folder before, or the user says `trust`.

That a run is one's own is recorded outside of it, in the user's state folder: whoever can write to
the run's folder could write such a record there too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError, field, in_command_line
from langevinrl.runs.files import read_json, write_text
from langevinrl.runs.folder import CHECKPOINTS, CONFIG, SWEEP, VERSIONS

VARIABLE = "LANGEVINRL_STATE"  # where records are kept; without it, in the user's state folder
OURS = ("langevinrl.envs.bandit:make",)  # written into configurations by our own studies
# Gymnasium ids that make what another argument names, in a registry of its own.
_DOORS_ELSEWHERE = re.compile(r"(GymV2\d|dm_control_compat|MeltingPotCompat)")
_MODULE_NAME = re.compile(r"[\w.]+:[\w.<>-]+")
_remembered: dict[str, set[str]] = {}  # of this process, where nothing can be written


def importing_names(agent: str, env: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """What a run of these would import by name; nothing for registered agents and tasks."""
    found = [f"agent {agent}"] if ":" in agent else []
    texts = list(_texts(env_kwargs))
    foreign = ":" in env and not (env in OURS and not texts)
    if foreign or _DOORS_ELSEWHERE.match(env) or any(map(_MODULE_NAME.fullmatch, texts)):
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
    """Refuses to follow names that a file of `place` holds, unless trusted or used there before.

    `place` is the folder of a run, a model or a sweep, or the file of a sweep.
    """
    names = list(names)
    if not names:
        return
    if not trust and not is_remembered(place, names):
        kind, _, name = names[0].partition(" ")
        what = "environment" if kind == "env" else "agent"
        own = f", or name your own with {field('env')}" if kind == "env" else ""
        raise UserError(
            f"{place} names the {what} {name!r}, which would be imported and called, and there is "
            "no record that you made it: whoever sent it could run anything so. If you know it, "
            f"say so with {field('trust', True)}{own}"
        )
    for name in names:
        require_outside(place, name.split()[1])
    if in_command_line():
        search_here()


def require_outside(place: Path, name: str) -> None:
    """Refuses `module:name` whose module lies in the folder: a run's folder is never imported from.

    Finding where a module lies imports nothing.
    """
    module = name.rpartition(":")[0].split(".")[0]
    inside = (place if place.is_dir() else place.parent / "no folder").resolve()
    try:
        spec = find_spec(module) if module else None
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    for found in [spec.origin or "", *(spec.submodule_search_locations or [])]:
        if Path(found).resolve().is_relative_to(inside):
            raise UserError(
                f"{name!r} would be imported from inside {place}, which is never done: a folder "
                "that is sent around could run anything so. Move the module elsewhere"
            )


def remember(place: Path, names: Iterable[str]) -> None:
    """Record that this user has used these names for a folder, if there is a place for that."""
    names, key = set(names), str(place.resolve())
    if not names:
        return
    names |= _names_of(key)
    _remembered[key] = names
    record = _record_of(key)
    if record is None:
        return
    try:
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(record, json.dumps({"folder": key, "names": sorted(names)}) + "\n")
    except (OSError, UserError):  # a home that cannot be written to: resuming asks for `trust`
        return


def is_remembered(place: Path, names: Iterable[str]) -> bool:
    """Whether this user has used all of these names for that folder."""
    return set(names) <= _names_of(str(place.resolve()))


def _names_of(key: str) -> set[str]:
    record, found = _record_of(key), set(_remembered.get(key, ()))
    if record is None or not record.is_file():
        return found
    try:
        table = read_json(record, "a record")
        return found | set(table["names"]) if table["folder"] == key else found
    except (UserError, KeyError, TypeError):  # damaged: as if there were none
        return found


def _record_of(key: str) -> Path | None:
    place = state_folder()
    return place and place / "trusted" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def state_folder() -> Path | None:
    """$LANGEVINRL_STATE, $XDG_STATE_HOME/langevinrl or ~/.local/state/langevinrl; None if none."""
    named, shared = os.environ.get(VARIABLE, ""), os.environ.get("XDG_STATE_HOME", "")
    if named:
        return Path(named)
    if os.path.isabs(shared):  # the standard has relative ones ignored
        return Path(shared) / "langevinrl"
    try:
        return Path.home() / ".local" / "state" / "langevinrl"
    except RuntimeError:  # no HOME, and nobody by this user's number
        return None


def search_here() -> None:
    """Let modules be found in the current folder, after all others; not in the folder of a run."""
    here = Path.cwd()
    if "" in sys.path or any(map(_holds_a_run, (here, *here.parents))):
        return
    sys.path.append("")


def _holds_a_run(path: Path) -> bool:
    made = (path / CHECKPOINTS).exists() or (path / VERSIONS).exists()
    return ((path / CONFIG).exists() and made) or (path / SWEEP).exists()
