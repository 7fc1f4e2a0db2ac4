"""A job on a real Ray cluster: its result, its failure, its end, and the loss of its node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import NODE_MARK, RayCluster, ray_cluster
from standins import count_to, counted, python_path, refuse, wait_for

ray: Any = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """A cluster that this process is connected to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path())
        with ray_cluster() as started:
            ray.init(address=started.address, log_to_driver=False, logging_level="ERROR")
            yield started
            ray.shutdown()


def as_task(function: Any, **options: Any) -> Any:
    """A function that takes one CPU and a worker process of its own."""
    return ray.remote(num_cpus=1, max_calls=1, **options)(function)


def test_a_failure_keeps_its_class_and_is_not_tried_again(cluster: RayCluster) -> None:
    with pytest.raises(ValueError, match="no such agent") as caught:
        ray.get(as_task(refuse, max_retries=3).remote("no such agent"))
    assert isinstance(caught.value, ray.exceptions.RayTaskError)


def test_a_cancelled_job_stops_and_a_waiting_one_never_starts(
    cluster: RayCluster, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("first", "second", "third")]
    jobs = [as_task(count_to).remote(str(path), 100) for path in paths]
    wait_for(paths[:2])
    for job in reversed(jobs):  # else the third takes the place of the first
        ray.cancel(job, force=True)
    for job in jobs:
        with pytest.raises((ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError)):
            ray.get(job, timeout=10)
    assert max(len(counted(path)[0]) for path in paths) < 100
    assert not paths[2].exists()


def test_jobs_use_both_nodes_and_outlive_the_loss_of_one(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """The last test of this file: the cluster has one node afterwards."""
    paths = [tmp_path / name for name in ("first", "second")]
    task = as_task(count_to, max_retries=2)
    jobs = [task.remote(str(path), 8, NODE_MARK) for path in paths]
    wait_for(paths)
    head, second = (node.mark for node in cluster.nodes)
    assert {counted(path)[1][0] for path in paths} == {head, second}
    cluster.kill_node(second)
    assert ray.get(jobs, timeout=60) == [str(path) for path in paths]
    for path in paths:
        numbers, places = counted(path)
        assert numbers == list(range(8))
        assert places[-1] == head
