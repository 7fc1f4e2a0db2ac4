"""Console output that cannot end a run."""

from __future__ import annotations

import codecs
import os
import sys
from typing import IO

ERRORS = "langevinrl"  # the name of `_plain_letters` as an encoding error handler
LETTERS = {"±": "+/-", "−": "-", "×": "x", "…": "...", "α": "alpha", "γ": "gamma", "σ": "sigma"}


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace letters that the encoding of the console lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    escaped = (letter.encode("ascii", "backslashreplace").decode() for letter in missing)
    words = (LETTERS.get(letter, other) for letter, other in zip(missing, escaped, strict=True))
    return "".join(words), error.end


codecs.register_error(ERRORS, _plain_letters)


class SafeStream:
    """A text stream that discards all output after a write has failed.

    The reader of a pipe may end, and a file or disk may be full.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        """`stream` is None in a process without stdout or stderr."""
        self.stream, self.lost = stream or open(os.devnull, "w"), stream is None
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self.lost:
            try:
                self.stream.write(text.encode(self.encoding, ERRORS).decode(self.encoding))
            except (OSError, ValueError):  # ValueError: the stream is closed
                self._discard()
        return len(text)

    def flush(self) -> None:
        if not self.lost:
            try:
                self.stream.flush()
            except (OSError, ValueError):
                self._discard()

    def isatty(self) -> bool:
        return not self.lost and not self.stream.closed and self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def _discard(self) -> None:
        """Send further output nowhere, also that of Python when it exits."""
        self.lost = True
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):  # a stream without a descriptor
            pass
        if self.stream is sys.stdout:
            print_error("the console cannot be written to; the run goes on without progress.")


def print_error(text: str) -> None:
    """Print a line to stderr, if that is possible."""
    stream = SafeStream(sys.stderr)
    stream.write(f"langevinrl: {text}\n")
    stream.flush()


def open_closed_streams() -> None:
    """Connect closed standard descriptors to the null device.

    Otherwise the files of a run would get their numbers, and messages of libraries would go there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def use_plain_letters() -> None:
    """Let `print` replace letters that the encoding of stdout or stderr lacks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ERRORS)
