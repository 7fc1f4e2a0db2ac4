"""Cores, GPUs and memory shared out among jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from langevinrl.errors import UserError
from langevinrl.replay.buffer import Replay
from langevinrl.runs.config import RunConfig
from langevinrl.sweeps import slots
from langevinrl.sweeps.slots import Slot, find_slots, fit_slots, replay_bytes
from langevinrl.types import Spec


def on_cores(monkeypatch: pytest.MonkeyPatch, cores: int, gpus: list[str] | None = None) -> None:
    monkeypatch.setattr(slots, "usable_cores", lambda: list(range(cores)))
    monkeypatch.setattr(slots, "visible_gpus", lambda: gpus or [])


def test_slots_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cores(monkeypatch, 4)
    assert [slot.cores for slot in find_slots(90)] == [(0,), (1,), (2,), (3,)]
    assert [slot.cores for slot in find_slots(90, workers=2)] == [(0, 2), (1, 3)]
    assert [slot.cores for slot in find_slots(1)] == [(0, 1, 2, 3)]
    on_cores(monkeypatch, 8, ["0", "1"])
    assert [slot.gpu for slot in find_slots(90)] == ["0", "1"]
    assert find_slots(90)[1].environment({})["CUDA_VISIBLE_DEVICES"] == "1"


def test_slot_with_one_core_uses_one_thread_and_keeps_xla_flags() -> None:
    found = Slot((0,)).environment({"XLA_FLAGS": "--mine", "HOME": "x"})
    assert found["OMP_NUM_THREADS"] == "1" and found["HOME"] == "x"
    assert found["XLA_FLAGS"] == "--mine --xla_cpu_multi_thread_eigen=false"
    assert Slot((0, 1)).environment({"HOME": "x"}) == {"HOME": "x"}


def test_visible_gpus_are_those_that_jax_can_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(slots, "find_spec", lambda name: None)
    assert slots.visible_gpus(tmp_path) == []  # without JAX's plugin they are of no use
    monkeypatch.setattr(slots, "find_spec", lambda name: object())
    assert slots.visible_gpus(tmp_path) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert slots.visible_gpus(tmp_path) == ["1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert slots.visible_gpus(tmp_path) == []


def test_replay_bytes_equal_those_of_the_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig("Pendulum-v1", iterations=100, warmup=500, capacity=10_000, seeds=2)
    ring = Replay(Spec(3, 1), 1_000, [0, 1], {"best": "action"})
    assert replay_bytes(config, 3, 1) == ring.num_bytes


def test_jobs_that_do_not_fit_in_memory_run_fewer_at_a_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slots, "free_memory", lambda: 10_000_000_000)
    four, big = [Slot((i,)) for i in range(4)], 4_000_000_000
    assert fit_slots(four, [1_000, 2_000], asked=True) == four
    assert fit_slots(four, [big] * 9, asked=False) == four[:2]
    assert "16.0 GB of replay; 10.0 GB are free: 2 at a time" in capsys.readouterr().out
    with pytest.raises(UserError, match="Try --workers 2"):
        fit_slots(four, [big] * 9, asked=True)
    with pytest.raises(UserError, match="smaller --capacity"):
        fit_slots(four, [3 * big], asked=False)
