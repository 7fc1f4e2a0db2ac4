"""The loop: seeds, exact resume, stopping, several updates per step."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import probes
import pytest
from same_end import assert_same_end, read_logs

from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError
from langevinrl.runs import callbacks, train
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finish import Stopped
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import RunFolder

NCLQL = {"agent": "nclql", "hyperparameters": {"hidden": (8, 8), "num_levels": 3}}


def config(env: str, out: Path | None = None, **changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "iterations": 40, "warmup": 100, "batch_size": 16, "num_envs": 3, "capacity": 250,
        "eval_every": 10, "eval_episodes": 2, "checkpoint_every": 20, "log_every": 10,
        "agent": "lql", "hyperparameters": {"hidden": (8, 8)},
    }  # fmt: skip
    return RunConfig(env, out=str(out), **(fields | changes))


def test_a_resumed_run_equals_an_uninterrupted_one_byte_by_byte(tmp_path: Path) -> None:
    """Lines written after the last checkpoint, as before a crash, are removed."""
    plan = NCLQL | {"seeds": 2}
    whole = train.train(config("Hopper-v4", tmp_path / "whole", **plan), quiet=True)
    plan["iterations"] = 20
    part = train.train(config("Hopper-v4", tmp_path / "part", **plan), quiet=True)
    with (part / "metrics.jsonl").open("a") as file:
        file.write('{"iterations": 30, "seed')
    with (part / "evaluations.csv").open("a") as file:
        file.write("nclql,Hopper-v4,0,30,90,0,12.")
    train.resume(part, 40, quiet=True)
    assert_same_end(whole, part)


def test_a_run_that_is_stopped_or_killed_resumes_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"eval_every": 6, "iterations": 6}
    whole = train.train(config("Pendulum-v1", tmp_path / "whole", **plan), quiet=True)
    advance_once, warmup = Run.advance, 34  # vector steps
    for name, signal_or_none, at in [
        ("stopped", signal.SIGTERM, warmup + 3),  # as a cluster does at its time limit
        ("early", signal.SIGINT, 20),
        ("killed", None, 20),
    ]:

        def advance(run: Run, number: int | None = signal_or_none, at: int = at) -> StepInfo:
            if run.vector_steps == at:
                if number is None:
                    raise SystemExit
                os.kill(os.getpid(), number)
            return advance_once(run)

        folder = tmp_path / name
        with monkeypatch.context() as patch:
            patch.setattr(Run, "advance", advance)
            with pytest.raises(Stopped if signal_or_none else SystemExit) as caught:
                train.train(config("Pendulum-v1", folder, **plan), quiet=True)
        if name == "stopped":
            assert f"at iteration 4.  Go on with: langevinrl resume {folder}" in str(caught.value)
            assert checkpoint.load(RunFolder(folder)).metadata["iteration"] == 4
        train.resume(folder, quiet=True)
        assert_same_end(whole, folder)


def advance(seed: int, seeds: int, iterations: int) -> Run:
    plan = config("Hopper-v4", seed=seed, seeds=seeds).resolved()
    with Run(plan) as run:
        run.until(iterations)
    return run


def test_a_seed_alone_equals_the_same_seed_with_others() -> None:
    alone, among = advance(2, 1, 6), advance(0, 3, 6)
    for name, ring in alone.replay.rings.items():
        np.testing.assert_allclose(ring[0], among.replay.rings[name][2], atol=1e-5, err_msg=name)
    mine = jax.tree.map(lambda leaf: leaf[2], among.state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, rtol=1e-4, atol=1e-6),
                 alone.state, mine)  # fmt: skip
    others = jax.tree.map(lambda leaf: leaf[1], among.state)
    weights = [jax.tree.leaves(state.critic.params)[0] for state in (mine, others)]
    assert not np.allclose(*weights)


def test_vmapped_seeds_equal_looped_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """vmap, used on accelerators, against a loop, used on CPUs."""
    looped = advance(0, 2, 4)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    mapped = advance(0, 2, 4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
                 looped.state, mapped.state)  # fmt: skip


def test_several_updates_per_step_and_random_actions() -> None:
    plan = config("probe", updates_per_iteration=3, random_actions=True).resolved()
    rows: list[dict[str, Any]] = []

    class Watch(callbacks.Callback):
        def on_step(self, run: Run, info: StepInfo) -> None:
            rows[:] = callbacks.metric_rows(run, info)

    with Run(plan, env=probes.ActionReward, callbacks=[Watch()]) as job:
        job.until(4)
    assert int(job.state.critic.opt_state[0].count[0]) == 3 * 4
    assert rows[0]["updates"] == 12
    actions = job.replay.rings["action"][0, : job.replay.size, 0]
    assert abs(float(actions.mean())) < 0.15
    assert float(actions.std()) == pytest.approx(1 / np.sqrt(3), abs=0.07)


def test_warm_up_makes_no_updates_and_no_iterations() -> None:
    with Run(config("Hopper-v4").resolved()) as job:
        before = jax.tree.map(np.array, job.state)
        for _ in range(34):  # 100 transitions of 3 environments
            info = job.advance()
            assert info.warming_up and info.iteration == 0 and not info.metrics
        jax.tree.map(np.testing.assert_array_equal, before, job.state)
        info = job.advance()
    assert not info.warming_up and info.iteration == 1
    assert job.replay.size == 35 * 3


def test_environments_that_cannot_be_saved_restart_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = train.train(config("probe", tmp_path / "run", iterations=20),
                       env=probes.ActionReward, quiet=True)  # fmt: skip
    train.resume(folder, 40, env=probes.ActionReward)
    assert "episodes restart" in capsys.readouterr().out
    assert read_logs(folder)[0][-1]["iterations"] == "40"


def test_a_run_killed_in_its_only_save_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run shorter than `checkpoint_every` logs its last evaluation before its only save."""
    plan = {"checkpoint_every": 100, "iterations": 6, "eval_every": 3}
    whole = train.train(config("Pendulum-v1", tmp_path / "whole", **plan), quiet=True)
    killed = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_new", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train.train(config("Pendulum-v1", killed, **plan), quiet=True)
    assert RunFolder(killed).last_evaluation() == 6
    train.resume(killed, quiet=True)
    assert_same_end(whole, killed)


@pytest.mark.parametrize(("evaluated", "begins_again"), [(10, True), (30, False), (40, False)])
def test_a_run_whose_checkpoints_are_gone_is_not_started_over_its_logs(
    evaluated: int, begins_again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = config("Hopper-v4", tmp_path, checkpoint_every=20 if evaluated < 40 else 100)
    plan.resolved().write(tmp_path / "config.json")
    logged = f"iterations,return\n{evaluated},1.5\n4"  # the last line is incomplete
    (tmp_path / "evaluations.csv").write_text(logged)
    monkeypatch.setattr(train, "Run", lambda *_, **__: 1 / 0)  # training would begin
    with pytest.raises(ZeroDivisionError if begins_again else UserError, match=r"zero|are gone"):
        train.resume(tmp_path)
    assert (tmp_path / "evaluations.csv").read_text() == logged


def test_environments_are_closed_if_the_evaluator_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(VectorEnv, "close", lambda envs, **_: closed.append(envs))
    monkeypatch.setattr(callbacks, "Evaluator", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train.train(config("Pendulum-v1", tmp_path / "run"), quiet=True)
    assert len(closed) == 2  # the check of the task, and the run
