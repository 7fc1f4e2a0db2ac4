"""Manifest of a checkpoint: its files with their digests, and the configuration of its run.

manifest.json    format version; size and SHA-256 of every file; the fields of the run that wrote
                 it; a digest of the manifest itself, computed alike in every version
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import UserError
from langevinrl.storage.files import FileDigest, digest_file, read_json, reason_of
from langevinrl.storage.folder import MANIFEST

FORMAT = 2
MAX_JSON = 2**28  # bytes; metadata holds the states of environments


class DamagedError(UserError):
    """A checkpoint is not what was written; an older one may be."""


class Manifest(NamedTuple):
    """Content of manifest.json."""

    files: dict[str, FileDigest]
    config: dict[str, Any] | None = None  # the fields of the run, if known

    def to_json(self) -> bytes:
        files = {name: digest._asdict() for name, digest in self.files.items()}
        table = {"format": FORMAT, "config": self.config, "files": files}
        return json.dumps(table | {"digest": digest_of(table)}, indent=1).encode()


def digest_of(table: dict[str, Any]) -> str:
    """Return the digest of a manifest: of all but the digest itself."""
    rest = {name: value for name, value in table.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_manifest(checkpoint: Path) -> Manifest:
    """Read and check the manifest of a checkpoint."""
    if not os.path.lexists(checkpoint / MANIFEST):
        raise DamagedError(
            f"checkpoint {checkpoint} has no {MANIFEST}: it is damaged, or of a version of "
            "langevinrl whose checkpoints this one does not read"
        )
    table = read_table(checkpoint / MANIFEST)
    if table.get("digest") != digest_of(table):
        raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} was changed")
    if table.get("format") != FORMAT:
        raise UserError(
            f"checkpoint {checkpoint} has the format {table.get('format')!r}; this version of "
            f"langevinrl reads {FORMAT} only. Use the version that wrote it"
        )
    return _parse(checkpoint, table)


def _parse(checkpoint: Path, table: dict[str, Any]) -> Manifest:
    files, config = table.get("files"), table.get("config")
    if not isinstance(files, dict) or not isinstance(config, dict | None):
        raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} lists no files")
    found: dict[str, FileDigest] = {}
    for name, entry in files.items():
        size = entry.get("size") if isinstance(entry, dict) else None
        if not re.fullmatch(r"[\w.-]+", name) or not isinstance(size, int) or size < 0:
            raise DamagedError(f"checkpoint {checkpoint} is damaged: {MANIFEST} lists {name!r}")
        found[name] = FileDigest(size, str(entry.get("sha256")))
    return Manifest(found, config)


def require_intact(path: Path, expected: FileDigest) -> None:
    """Raise if a file is not the one written, byte for byte."""
    try:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size != expected.size:  # without reading it all
            size = f"it has {found.st_size} bytes, not {expected.size}"
            raise DamagedError(f"{path} is damaged: {size}")
        if digest_file(path) != expected:
            raise DamagedError(f"{path} is damaged: its SHA-256 is not the one recorded")
    except OSError as error:
        raise DamagedError(f"{path} is damaged: {reason_of(error)}") from error


def read_table(path: Path) -> dict[str, Any]:
    """Return the table in a JSON file of a checkpoint."""
    try:
        table = read_json(path, "a table", MAX_JSON)
    except UserError as error:
        raise DamagedError(f"checkpoint {path.parent} is damaged: {error}") from error
    if not isinstance(table, dict):
        raise DamagedError(f"{path} is damaged: it holds no table")
    return table
