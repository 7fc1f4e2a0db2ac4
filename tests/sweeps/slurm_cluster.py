"""A real SLURM cluster of one node on this machine, for tests; Debian's packages must be there."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from processes import free_ports, guarded

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "squeue")
DAEMONS = "/usr/sbin"  # not on every user's path
# cred_expire: a requeued job waits that long before it starts again, by default two minutes.
# KillWait: seconds from SIGTERM to SIGKILL.  No cgroups, which a container may not have.
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5,socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
KillWait=1
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """Those of SLURM's and munge's programs that are not installed."""
    path = f"{os.environ.get('PATH', '')}:{DAEMONS}"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


class SlurmCluster:
    """A controller and one node of two CPUs.  Commands find them by SLURM_CONF=`config`."""

    def __init__(self, folder: Path, processes: list[subprocess.Popen[bytes]]) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.processes = processes

    def environment(self) -> dict[str, str]:
        """What daemons and commands run with; jobs inherit it from the command that made them."""
        path = f"{os.environ['PATH']}:{DAEMONS}"
        return os.environ | {"SLURM_CONF": str(self.config), "PATH": path}

    def write_config(self) -> None:
        """Write slurm.conf, munge's key and the folders that both need."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        controller_port, node_port = free_ports(2)
        self.config.write_text(
            CONFIG.format(
                host=socket.gethostname().partition(".")[0],
                user=getpass.getuser(),
                folder=self.folder,
                controller_port=controller_port,
                node_port=node_port,
            )
        )

    def run(self, *command: str) -> str:
        """What a SLURM command prints."""
        done = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=30
        )
        if done.returncode:
            raise RuntimeError(f"{command} failed: {done.stderr}")
        return done.stdout.strip()

    def start_daemon(self, *command: str) -> None:
        """Start a program that stays, its words in a file of its name."""
        with (self.folder / f"{command[0]}.out").open("w") as file:
            process = subprocess.Popen(
                command, env=self.environment(), stdout=file, stderr=file, start_new_session=True
            )
        self.processes.append(process)

    def words_of_daemons(self) -> str:
        """All that the daemons have said."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.out")))

    def start(self, seconds: float = 30.0) -> None:
        """Start the daemons and return when the node is idle."""
        self.write_config()
        files = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "munge.seed"}
        files |= {"pid-file": "munge.pid", "log-file": "munge.log"}
        options = [f"--{name}={self.folder / file}" for name, file in files.items()]
        self.start_daemon("munged", "--foreground", *options)
        end = time.monotonic() + seconds
        while not (self.folder / "munge.socket").exists() and time.monotonic() < end:
            time.sleep(0.02)
        self.start_daemon("slurmctld", "-D")
        self.start_daemon("slurmd", "-D")
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):  # the controller does not answer yet
                if self.run("sinfo", "--noheader", "--format=%T") == "idle":
                    return
            time.sleep(0.1)
        raise RuntimeError(f"SLURM did not start:\n{self.words_of_daemons()}")


@contextlib.contextmanager
def slurm_cluster() -> Iterator[SlurmCluster]:
    """A cluster for the time of the block, removed completely afterwards.

    Its daemons and jobs have SLURM_CONF; slurmstepd, which watches a job, is no child of any daemon
    and wipes its environment, but it has a socket in the cluster's folder.
    """
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with guarded("slurm-", "SLURM_CONF", "slurm.conf") as folder:
            cluster = SlurmCluster(folder, processes)
            cluster.start()
            yield cluster
    finally:
        for process in processes:
            process.wait()
