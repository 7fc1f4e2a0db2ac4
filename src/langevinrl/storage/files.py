"""Readers and writers of files, safe against links, odd files and crashes.  Needs no JAX.

A folder may come from someone else.  Below the folder of a run or sweep nothing is opened, written,
removed or read through a symbolic link: files are opened here, without following one, and
`require_inside` checks the folders on the way.  A path that the user gives may be a link: resolve
it first.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import UserError

MAX_BYTES = 64 * 2**20  # of a text file; ours are a hundred times smaller
IS_LINK = "is a link: a run or sweep uses only files inside its folder. Put the file itself there"
# Errors of file systems without hard links, or that forbid them.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


class DiskError(UserError):
    """The disk refused a write; another try may succeed."""

    exit_code = 1


class FileDigest(NamedTuple):
    """Size in bytes and SHA-256 of a file's content."""

    size: int
    sha256: str


def open_regular(path: Path, flags: int = os.O_RDONLY) -> FileIO:
    """Open a regular file, unbuffered; an OSError says that it is a link, a pipe or a device.

    Opening does not wait for a pipe.
    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    return FileIO(handle, "r+b" if flags & os.O_RDWR else "rb")


def open_append(path: Path) -> FileIO:
    """Open a regular file to append to; a missing one is created."""
    return open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)


def read_text(path: Path, what: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a regular file; `what` names its content in errors."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > max_bytes:
                raise OSError(errno.EFBIG, f"it has more than {max_bytes} bytes")
            content = file.readall()
    except OSError as error:
        raise UserError(f"cannot read {what} from {path}: {reason_of(error)}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {what} from {path}: it is not text ({error})") from error


def read_json(path: Path, what: str, max_bytes: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file; `what` names it in errors."""
    text = read_text(path, what, max_bytes)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"cannot read {what} from {path}: {error}") from error
    except RecursionError:
        raise UserError(f"cannot read {what} from {path}: it is nested too deeply") from None


def write_text(path: Path, text: str) -> None:
    """Write a file atomically, with default permissions; a link at `path` is replaced."""
    with _draft_of(path, text) as draft:
        draft.replace(path)


def create_text(path: Path, text: str) -> bool:
    """Write a new file atomically; return False if one exists, also if it was made just now."""
    with _draft_of(path, text) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            try:
                write_new(path, [text.encode()])  # not atomic, but never over another's file
            except FileExistsError:
                return False
    return True


@contextmanager
def _draft_of(path: Path, text: str) -> Iterator[Path]:
    """Write a temporary file next to `path`, with a name that no other process or thread uses."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        draft.unlink(missing_ok=True)
        try:
            write_new(draft, [text.encode()])
            yield draft
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {reason_of(error)}") from error


def write_new(path: Path, pieces: Iterable[Any]) -> FileDigest:
    """Create a file from pieces of bytes and force it to disk; return its digest.

    Raises FileExistsError if there is one already.
    """
    digest, size = hashlib.sha256(), 0
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for piece in pieces:
            write_all(handle, piece)
            digest.update(piece)
            size += len(piece)
        os.fsync(handle)
    finally:
        os.close(handle)
    return FileDigest(size, digest.hexdigest())


def write_all(handle: int, data: Any) -> None:
    """Write all of `data`, bytes or an array of them, to an open file."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def digest_file(path: Path) -> FileDigest:
    """Return size and SHA-256 of a regular file."""
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return FileDigest(os.fstat(file.fileno()).st_size, digest.hexdigest())


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def user_folder(own: str, shared: str, at_home: str) -> Path | None:
    """Return the folder $own, $shared/langevinrl or ~/at_home/langevinrl; None without a home.

    user_folder("LANGEVINRL_CACHE", "XDG_CACHE_HOME", ".cache")
    """
    named, standard = os.environ.get(own, ""), os.environ.get(shared, "")
    if named:
        return Path(named)
    if os.path.isabs(standard):  # the XDG standard ignores relative paths
        return Path(standard) / "langevinrl"
    try:
        return Path.home() / at_home / "langevinrl"
    except RuntimeError:  # no HOME, and no such user
        return None


def require_inside(root: Path, path: Path) -> Path:
    """Return a path below a run or sweep folder; raise if it leads through a symbolic link."""
    below = itertools.takewhile(lambda one: one != root, (path, *path.parents))
    for part in below:
        if part.is_symlink():
            raise UserError(f"{part} {IS_LINK}")
    return path


def require_no_links(folder: Path) -> None:
    """Raise if an entry of a run or sweep folder is a symbolic link, a pipe or a device."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise UserError(f"{escape_controls(entry.path)} {IS_LINK}")
            if not entry.is_file() and not entry.is_dir():
                raise UserError(f"{escape_controls(entry.path)} is no ordinary file")


def escape_controls(text: str) -> str:
    """Return text with control characters escaped, so that names in files cannot use them."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def require_no_link(path: Path) -> Path:
    """Return a path to write to; raise if it is a symbolic link."""
    if path.is_symlink():
        raise UserError(f"{path} is a link, and writing there would replace what it points to")
    return path


def reason_of(error: OSError) -> str:
    """Return the system's reason, such as "No space left on device"."""
    return error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
