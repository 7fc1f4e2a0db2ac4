"""Small text files, read and written so that a strange one does no harm.  Needs no JAX."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError

MOST_BYTES = 64 * 2**20  # of a file of text: the largest of ours have a hundredth of that
# Where a file system knows no second name for a file, or has it forbidden.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def read_text(path: Path, what: str, most: int = MOST_BYTES) -> str:
    """The text of an ordinary file; `what` says in an error what was looked for in it.

    A pipe would be waited for and /dev/zero read for ever: neither is opened as a file is.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UserError(f"cannot read {what} from {path}: it is not an ordinary file")
            content = file.read(most + 1)
    except OSError as error:
        raise UserError(f"cannot read {what} from {path}: {reason_of(error)}") from error
    if len(content) > most:
        raise UserError(f"cannot read {what} from {path}: it has more than {most} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {what} from {path}: it is not text ({error})") from error


def read_json(path: Path, what: str) -> Any:
    """What a JSON file holds."""
    text = read_text(path, what)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"cannot read {what} from {path}: {error}") from error
    except RecursionError:
        raise UserError(f"cannot read {what} from {path}: it is nested too deeply") from None


def write_text(path: Path, text: str, *, exclusive: bool = False) -> None:
    """Write a file whole or not at all, with the user's ordinary permissions.

    `exclusive` refuses a file that is there already, also one that another process made just now.
    A link that lies there is replaced, not followed.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        draft.unlink(missing_ok=True)
        try:
            _create(draft, text)
            if exclusive:
                _name_once(draft, path, text)
            else:
                draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError as error:
        raise UserError(f"{path} is there already: another process has just made it") from error
    except OSError as error:
        raise UserError(f"cannot write {path}: {reason_of(error)}") from error


def _create(path: Path, text: str) -> None:
    """A new file, on the disk when this returns."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)


def _name_once(draft: Path, path: Path, text: str) -> None:
    """Give a draft its name, unless that is taken."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _create(path, text)  # not whole after a crash just here, but never over another's


def user_folder(own: str, shared: str, at_home: str) -> Path | None:
    """A place of the user's: $own itself, or langevinrl in $shared or ~/at_home; None if none is.

    user_folder("LANGEVINRL_CACHE", "XDG_CACHE_HOME", ".cache")
    """
    named, standard = os.environ.get(own, ""), os.environ.get(shared, "")
    if named:
        return Path(named)
    if os.path.isabs(standard):  # the standard has relative ones ignored
        return Path(standard) / "langevinrl"
    try:
        return Path.home() / at_home / "langevinrl"
    except RuntimeError:  # no HOME, and nobody by this user's number
        return None


def require_no_link(path: Path) -> Path:
    """Refuses to write where a folder of someone's has put a link to another place."""
    if path.is_symlink():
        raise UserError(f"{path} is a link, and writing there would replace what it points to")
    return path


def reason_of(error: OSError) -> str:
    """What the system says of a file it refused, such as "No space left on device"."""
    return error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
