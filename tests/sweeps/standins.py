"""Jobs for test clusters: they count in a file, and go on from where a cut one was."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def count_to(path: str, end: int, place: str = "") -> str:
    """Append the numbers below `end` that the file lacks, five a second, each with its place.

    The place is this process's environment variable of that name.
    """
    file = Path(path)
    start = len(file.read_text().split()) if file.exists() else 0
    for number in range(start, end):
        with file.open("a") as opened:
            opened.write(f"{number}:{os.environ.get(place, '')}\n")
        time.sleep(0.2)
    return path


def counted(path: Path) -> tuple[list[int], list[str]]:
    """The numbers of a file and the places they were written at."""
    words = [line.split(":") for line in path.read_text().split()] if path.exists() else []
    return [int(number) for number, _ in words], [place for _, place in words]


def python_path() -> str:
    """The PYTHONPATH with which a job's process finds this file too."""
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, [inherited])])


def wait_for(paths: list[Path], seconds: float = 30.0) -> None:
    """Return when a job has begun to count in each of these files."""
    end = time.monotonic() + seconds
    while not all(counted(path)[0] for path in paths):
        if time.monotonic() > end:
            raise TimeoutError(f"no job began in {paths}")
        time.sleep(0.05)


def refuse(sentence: str) -> None:
    """A job that fails."""
    raise ValueError(sentence)


class RequeuedCount:
    """`count_to` as a job that submitit puts back into the queue when its node is wanted."""

    def __call__(self, path: str, end: int, place: str) -> str:
        return count_to(path, end, place)

    def checkpoint(self, path: str, end: int, place: str) -> Any:
        """The same call again: what was done is in the file."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, path, end, place)
