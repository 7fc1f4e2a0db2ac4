"""The manifest of a checkpoint: which files it has, what tells each from any other, whose it is.

manifest.json    format version; size and SHA-256 of every file; the fields of the run that wrote
                 it; a digest of the manifest itself, made alike in every version
"""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import UserError
from langevinrl.storage.disk import Written, measure
from langevinrl.storage.folder import MANIFEST, METADATA

FORMAT = 1  # of the checkpoints written now; 0 are those of before there were manifests
MOST_JSON = 2**28  # bytes; more is no file of ours


class DamagedError(UserError):
    """A checkpoint is not what was written; an older one may be."""


class Manifest(NamedTuple):
    """What a checkpoint's folder should hold."""

    format: int
    files: dict[str, Written]
    config: dict[str, Any] | None = None  # the run's fields; None if nobody said

    def to_json(self) -> bytes:
        files = {name: written._asdict() for name, written in self.files.items()}
        table = {"format": self.format, "config": self.config, "files": files}
        return json.dumps(table | {"digest": digest_of(table)}, indent=1).encode()


def digest_of(table: dict[str, Any]) -> str:
    """Of all but the digest itself, whatever else a later version may add."""
    rest = {name: value for name, value in table.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_manifest(checkpoint: Path) -> Manifest:
    """The manifest, sound in itself; one of format 0 is made up for a checkpoint without."""
    if not (checkpoint / MANIFEST).exists():
        return _read_unversioned(checkpoint)
    table = read_json(checkpoint / MANIFEST)
    if table.get("digest") != digest_of(table):
        raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} was changed")
    version = table.get("format")
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise UserError(
            f"checkpoint {checkpoint} has the format {version!r}; this version of langevinrl "
            f"reads up to {FORMAT}. A newer one may know it"
        )
    return _parse(checkpoint, table)


def _parse(checkpoint: Path, table: dict[str, Any]) -> Manifest:
    files, config = table.get("files"), table.get("config")
    if not isinstance(files, dict) or not isinstance(config, dict | None):
        raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} lists no files")
    found: dict[str, Written] = {}
    for name, entry in files.items():
        size = entry.get("size") if isinstance(entry, dict) else None
        if Path(name).name != name or not isinstance(size, int) or size < 0:
            raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} lists {name!r}")
        found[name] = Written(size, str(entry.get("sha256")))
    return Manifest(table["format"], found, config)


def _read_unversioned(checkpoint: Path) -> Manifest:
    """Of format 0: whatever files are there, as they are."""
    metadata = read_json(checkpoint / METADATA)
    if "format" in metadata:
        raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} is gone")
    names = [path.name for path in checkpoint.glob("*") if path.is_file()]
    return Manifest(0, {name: Written(-1, "") for name in names})


def require_sound(path: Path, expected: Written) -> None:
    """Refuses a file that is not the one written, byte for byte; of format 0 only an odd kind."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(f"{path} is damaged: it is no ordinary file")
        if expected.size < 0:
            return
        if status.st_size != expected.size:
            size = f"it has {status.st_size} bytes, not {expected.size}"
            raise DamagedError(f"{path} is damaged: {size}")
        if measure(path) != expected:
            raise DamagedError(f"{path} is damaged: its SHA-256 is not the one recorded")
    except OSError as error:
        raise DamagedError(f"{path} is damaged: {error.strerror or error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """A table in a file of ours, of a sane size."""
    require_sound(path, Written(-1, ""))
    try:
        if path.stat().st_size > MOST_JSON:
            raise DamagedError(f"{path} is damaged: it is larger than such a file can be")
        table = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if not isinstance(table, dict):
        raise DamagedError(f"{path} is damaged: it holds no table")
    return table
