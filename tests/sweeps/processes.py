"""Processes that a test cluster started: found by what they inherited or listen on, and ended.

As a program, `processes.py NAME VALUE FOLDER` is a cluster's guard, see `guarded`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def is_alive(pid: str) -> bool:
    """Whether a process is there and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def others() -> list[str]:
    """The living processes but this one and the one that started it."""
    pids = [folder.name for folder in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if int(pid) not in (os.getpid(), os.getppid()) and is_alive(pid)]


def with_variable(name: str, value: str) -> list[int]:
    """The processes that were started with this environment variable, inherited or not."""
    wanted = f"{name}={value}".encode()
    found = []
    for pid in others():
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is another user's
            continue
        if wanted in words:
            found.append(int(pid))
    return found


def with_socket_below(folder: Path) -> list[int]:
    """The processes that hold a Unix socket whose path is below `folder`."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    named = [words for words in lines if len(words) > 7 and words[7].startswith(f"{folder}/")]
    wanted = {f"socket:[{words[6]}]" for words in named}
    found = []
    for pid in others():
        try:
            held = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            continue
        if held & wanted:
            found.append(int(pid))
    return found


def kill_all(find: Callable[[], list[int]], seconds: float = 10.0) -> None:
    """SIGKILL to all that `find` finds, again until it finds none."""
    end = time.monotonic() + seconds
    while pids := find():
        if time.monotonic() > end:
            raise TimeoutError(f"processes {pids} live on after SIGKILL")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextlib.contextmanager
def guarded(prefix: str, name: str, file: str = "") -> Iterator[Path]:
    """A new folder below /tmp; what its cluster started is killed when the block is left.

    The cluster's processes are those with the environment variable `name` set to the folder, or
    to `file` in it, and those with a socket in it.  A process of its own kills them and deletes the
    folder, so that this happens even if the tests are killed: it waits for the end of its input.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    folder.chmod(0o755)  # munge wants a socket that all can reach
    command = [sys.executable, __file__, name, str(folder / file), str(folder)]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield folder
    finally:
        guard.communicate()
        assert guard.returncode == 0, f"processes with {name}={folder / file} may live on"


def main(name: str, value: str, folder: str) -> None:
    """Wait for the end of the input, then end a cluster."""
    sys.stdin.read()
    kill_all(lambda: [*with_variable(name, value), *with_socket_below(Path(folder))])
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
