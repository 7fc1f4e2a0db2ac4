"""A real Ray cluster of two nodes on one machine, for tests, of which one node can be killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from processes import free_ports, guarded, kill_all, with_variable

CLUSTER = "LANGEVINRL_TEST_CLUSTER"
NODE_MARK = "LANGEVINRL_TEST_NODE"
# Nodes and drivers show each other this token.  Ray reads both when it is imported, so this file is
# imported first; without them it looks for a token in the user's home, and may leave one there.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
STARTED = "Ray runtime started"  # what `ray start` says when its node can be used
# Nodes that share a machine may not share ports: 0 lets the system choose.
OPTIONS = (
    "--block --num-cpus 1 --num-gpus 0 --object-store-memory 80000000 --include-log-monitor false "
    "--disable-usage-stats --min-worker-port 0 --max-worker-port 0 --dashboard-agent-listen-port 0"
).split()


class Node:
    """One `ray start` with all its processes."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.mark = uuid.uuid4().hex
        self.out = folder / f"{self.mark}.out"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options, *OPTIONS]
        # The node's processes inherit its mark, by which a task sees where it runs.  Ray writes
        # titles over the memory of its processes' environments, unless SPT_NOENV forbids it.
        marks = {CLUSTER: str(folder), NODE_MARK: self.mark, "SPT_NOENV": "1"}
        with self.out.open("w") as file:
            self.process = subprocess.Popen(
                command, env=os.environ | marks, stdout=file, stderr=file, start_new_session=True
            )

    def wait(self, seconds: float = 60.0) -> None:
        """Return when the node can be used."""
        end = time.monotonic() + seconds
        while STARTED not in self.out.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"ray start failed:\n{self.out.read_text()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to the node's every process, its workers too; again is no error."""
        kill_all(lambda: with_variable(NODE_MARK, self.mark))
        self.process.wait()


class RayCluster:
    """A head node and a second one, one CPU each; drivers connect to `address`."""

    def __init__(self, folder: Path, nodes: list[Node]) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.nodes = nodes

    def start(self) -> None:
        """Start both nodes, the head first."""
        port = self.address.rpartition(":")[2]
        head = f"--head --port {port} --include-dashboard false --temp-dir {self.folder}"
        for options in (head, f"--address {self.address}"):
            self.nodes.append(Node(self.folder, "--node-ip-address", "127.0.0.1", *options.split()))
            self.nodes[-1].wait()

    def kill_node(self, mark: str) -> None:
        """Kill the node with this mark, which a task on it finds in its environment."""
        next(node for node in self.nodes if node.mark == mark).kill()


@contextlib.contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """A cluster for the time of the block, removed completely afterwards.

    Its folder is not pytest's: the paths of Ray's sockets in it may have 107 characters only.
    """
    nodes: list[Node] = []
    try:
        with guarded("ray-", CLUSTER) as folder:
            cluster = RayCluster(folder, nodes)
            cluster.start()
            yield cluster
    finally:
        for node in nodes:
            node.process.wait()
