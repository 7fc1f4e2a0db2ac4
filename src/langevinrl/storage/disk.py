"""What a save does to the disk, operation by operation, so that a test can make any of them fail.

A file is forced to disk before it counts, and takes its name only when it is whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple


class Written(NamedTuple):
    """What tells a file from any other: bytes, and SHA-256 of them."""

    size: int
    sha256: str


class Disk:
    """The disk itself."""

    def make_folder(self, path: Path) -> None:
        path.mkdir()

    def open_new(self, path: Path) -> IO[bytes]:
        return path.open("xb", buffering=0)

    def write(self, file: IO[bytes], data: Any) -> None:
        """All of `data`, which is bytes or an array of them."""
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]

    def sync(self, handle: int) -> None:
        """Wait until the disk has it."""
        os.fsync(handle)

    def rename(self, path: Path, target: Path) -> None:
        path.rename(target)

    def remove_folder(self, path: Path) -> None:
        shutil.rmtree(path)

    def write_file(self, path: Path, pieces: Iterable[Any]) -> Written:
        """A new file of these pieces of bytes, on disk when this returns."""
        digest, size = hashlib.sha256(), 0
        with self.open_new(path) as file:
            for piece in pieces:
                self.write(file, piece)
                digest.update(piece)
                size += len(piece)
            self.sync(file.fileno())
        return Written(size, digest.hexdigest())

    def sync_folder(self, path: Path) -> None:
        """So that the names in it are on disk too."""
        handle = os.open(path, os.O_RDONLY)
        try:
            self.sync(handle)
        finally:
            os.close(handle)


def measure(path: Path) -> Written:
    """Size and SHA-256 of a file as it is now."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return Written(file.tell(), digest.hexdigest())
