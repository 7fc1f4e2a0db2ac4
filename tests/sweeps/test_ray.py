"""A sweep on a real Ray cluster of two nodes, of which one is killed in the middle."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import RayCluster, ray_cluster
from sweeping import TINY, assert_same, run_in_this_process, tiny_configs, until

from langevinrl.errors import UserError
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.grid import make_config
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.start import sweep

ray: Any = pytest.importorskip("ray")
LONG = {"iterations": 1_500, "eval_every": 750, "checkpoint_every": 20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """A cluster whose processes find the tests' environments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=":")
        with ray_cluster() as started:
            yield started


def test_failing_job_is_retried_on_ray(cluster: RayCluster, tmp_path: Path) -> None:
    bad = make_config({**TINY, "env": "toys:breaking"})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent.parent))
        folder = sweep([bad], tmp_path / "sweep", backend="ray", address=cluster.address,
                       quiet=True)  # fmt: skip
    (job,) = folder.jobs.values()
    assert len(job.errors) == 2 and "the wheel came off" in job.last_error()


def test_jobs_of_a_lost_node_continue_exactly(cluster: RayCluster, tmp_path: Path) -> None:
    """The last test of this file: the cluster has one node afterwards."""
    configs = tiny_configs(2, **LONG)
    out = tmp_path / "ray"
    jobs = list(SweepFolder.write(out, configs).jobs.values())

    def begun() -> bool:
        return sum(RunFolder(job.folder).saved_iteration() >= 20 for job in jobs) >= 2

    def kill_one() -> None:
        until(begun)
        cluster.nodes[1].kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    sweep(configs, out, backend="ray", address=cluster.address, quiet=True,
          seeds_per_process="one")  # fmt: skip
    killer.join()
    assert all(job.done for job in jobs)
    resumed = [job for job in jobs if RunFolder(job.folder).resumes.exists()]
    assert len(resumed) == 1  # the one that was on the lost node
    assert_same(out, run_in_this_process(configs, tmp_path / "local"))


def test_wrong_ray_address_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
        sweep([make_config(TINY)], tmp_path / "sweep", backend="ray", address="127.0.0.1:1")
    with pytest.raises(UserError, match="expected auto or HOST:PORT"):
        sweep([make_config(TINY)], tmp_path / "sweep", backend="ray", address="cluster")


def test_missing_ray_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[ray\]'"):
        sweep([make_config(TINY)], tmp_path / "sweep", backend="ray")
