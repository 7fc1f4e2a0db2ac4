"""A run's configuration: complete, checked before anything is computed, explained."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.errors import UserError, in_flags, unknown
from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig, agent_fields
from langevinrl.types import Spec

MILLION, SHORT = 1_000_000, 200_000
LENGTHS = {
    "HalfCheetah": MILLION,
    "Walker2d": MILLION,
    "Humanoid": MILLION,
    "Hopper": MILLION,
    "Ant": MILLION,
    "Swimmer": MILLION,
    "Pusher": SHORT,
    "Reacher": SHORT,
    "InvertedDoublePendulum": SHORT,
}


def refusal(env: Any = "Hopper-v4", **fields: Any) -> str:
    with pytest.raises(UserError) as caught:
        RunConfig(env, **fields).resolved()
    return str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_a_resolved_run_survives_json(tmp_path: Path, name: str) -> None:
    config = RunConfig("Hopper-v4", agent=name, seed=5, seeds=2).resolved()
    config.write(tmp_path / "config.json")
    back = RunConfig.read(tmp_path / "config.json")
    assert back == config
    assert back.resolved() == config
    default: object = METHODS[name].load()(Spec(3, 2))
    assert back.make_agent(Spec(3, 2)) == config.make_agent(Spec(3, 2)) == default
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_resolved_run_leaves_nothing_to_defaults(tmp_path: Path) -> None:
    RunConfig("Hopper-v4").resolved().write(tmp_path / "config.json")
    table = json.loads((tmp_path / "config.json").read_text())
    assert table.keys() == {f.name for f in dataclasses.fields(RunConfig)}
    assert None not in table.values() and table["env_kwargs"] == {}
    own = {f.name for f in dataclasses.fields(METHODS["nclql"].load())} - {"spec"}
    assert table["hyperparameters"].keys() == own
    assert table["out"] == "runs/nclql-Hopper-v4-0"


def test_hyperparameters_reach_the_agent() -> None:
    config = RunConfig("Hopper-v4", hyperparameters={"hidden": [8, 8], "num_levels": 4})
    agent = config.make_agent(Spec(3, 2))
    assert agent_fields(agent)["hidden"] == (8, 8)
    assert agent_fields(agent)["num_levels"] == 4
    assert hash(agent) == hash(config.make_agent(Spec(3, 2)))


@pytest.mark.parametrize("version", ["v4", "v5"])
@pytest.mark.parametrize("task", LENGTHS)
def test_the_papers_lengths(task: str, version: str) -> None:
    assert PAPER_ITERATIONS.keys() == LENGTHS.keys()
    config = RunConfig(f"{task}-{version}").resolved()
    assert config.iterations == LENGTHS[task]
    assert config.eval_every == LENGTHS[task] // 40
    assert RunConfig(f"{task}-{version}", iterations=7).resolved().iterations == 7


def test_the_papers_protocol_is_the_default() -> None:
    config = RunConfig("Hopper-v4").resolved()
    assert (config.num_envs, config.warmup, config.warmup_steps) == (5, 30_000, 6_000)
    assert (config.batch_size, config.capacity, config.eval_episodes) == (256, 1_000_000, 20)
    assert config.updates_per_iteration == 1


def test_evaluations_are_a_fortieth_apart_and_never_none() -> None:
    assert RunConfig("Hopper-v4", iterations=20_000).resolved().eval_every == 500
    assert RunConfig("Hopper-v4", iterations=3).resolved().eval_every == 1
    assert RunConfig("Hopper-v4", iterations=20_000, eval_every=7).resolved().eval_every == 7


def test_seeds_and_warmup_in_vector_steps() -> None:
    assert RunConfig("x", seed=7, seeds=3).seed_list == [7, 8, 9]
    assert RunConfig("x", warmup=11, num_envs=5).warmup_steps == 3


def test_the_folders_name_is_fit_for_a_disk() -> None:
    config = RunConfig("a.b:f.<locals>.<lambda>", iterations=1, seed=2).resolved()
    assert config.out == "runs/nclql-a.b-f.-locals-.-lambda-2"
    assert RunConfig("toys/Timed-v0", iterations=1).resolved().out == "runs/nclql-toys-Timed-v0-0"


def test_another_task_needs_a_length_and_a_slip_of_the_pen_is_noticed() -> None:
    assert "say how long with iterations=N" in refusal("Pendulum-v1")
    with in_flags():
        assert "say how long with --iterations N" in refusal("Pendulum-v1")
    assert "did you mean Hopper-v4?" in refusal("Hoper-v4")


def test_unknown_names_suggest_the_nearest() -> None:
    message = refusal(agent="nclqll")
    assert "unknown agent 'nclqll'; did you mean nclql" in message and "lql" in message
    message = refusal(hyperparameters={"sigma_maxx": 1.0})
    assert "unknown field of nclql 'sigma_maxx'; did you mean sigma_max" in message
    assert "unknown field of nclql 'spec'" in refusal(hyperparameters={"spec": None})
    assert unknown("fruit", "qqq", ["pear"]) == "unknown fruit 'qqq'. Known: pear"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("iterations", 0, "at least 1"),
        ("iterations", -5, "at least 1"),
        ("iterations", 1.5, "expected int"),
        ("iterations", "many", "expected int"),
        ("seed", -1, "from 0"),
        ("seed", 2**32, "from 0"),
        ("seeds", 0, "at least 1"),
        ("num_envs", 0, "at least 1"),
        ("num_envs", True, "expected int"),
        ("async_envs", "no", "expected bool"),
        ("action_bound", 0.0, "no room"),
        ("action_bound", -1.0, "at least 0"),
        ("action_bound", float("inf"), "finite"),
        ("warmup", -1, "at least 0"),
        ("warmup", 255, "less than one batch"),
        ("capacity", 29_999, "is less than warmup=30000"),
        ("batch_size", 0, "at least 1"),
        ("eval_every", 0, "at least 1"),
        ("eval_episodes", 0, "at least 1"),
        ("checkpoint_every", 0, "at least 1"),
        ("log_every", 0, "at least 1"),
        ("updates_per_iteration", 0, "at least 1"),
        ("env", 3, "expected str"),
        ("out", 3, "expected str | None"),
        ("hyperparameters", [], "expected dict"),
        ("env_kwargs", 3, "expected dict"),
        ("env_kwargs", {"a": object()}, "pass a function"),
    ],
)
def test_bad_values_of_the_run_are_refused(field: str, value: Any, said: str) -> None:
    message = refusal(**{field: value})
    assert said in message
    assert field in message


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("gamma", 1.01, "from 0 to 1"),
        ("gamma", -0.1, "from 0 to 1"),
        ("target_rate", 2, "from 0 to 1"),
        ("learning_rate", float("nan"), "finite"),
        ("learning_rate", "fast", "expected float"),
        ("step_size", -1e-4, "at least 0"),
        ("num_levels", 0, "at least 1"),
        ("hidden", (8, 0), "at least 1"),
        ("hidden", 8, "expected tuple[int, ...]"),
        ("hidden", (), "expected at least one"),
        ("hidden", (8, 2.5), "expected tuple[int, ...]"),
        ("activation", "mush", "expected 'mish' or 'gelu' or 'relu'"),
        ("clip", 1, "expected bool"),
        ("clip", "True", "expected bool"),
    ],
)
def test_bad_values_of_the_agent_are_refused(field: str, value: Any, said: str) -> None:
    message = refusal(hyperparameters={field: value})
    assert field in message and said in message


def test_a_whole_number_will_do_for_a_float() -> None:
    config = RunConfig("Hopper-v4", hyperparameters={"gamma": 0, "reward_scale": 1}).resolved()
    assert config.hyperparameters["gamma"] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot read"),
        ("[1]", "names no env"),
        ("{}", "names no env"),
        ('{"env": "Hopper-v4", "batchsize": 3}', "did you mean batch_size"),
        ('{"env": 7}', "expected str"),
        ('{"env": "Hopper-v4", "hyperparameters": []}', "expected dict"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        RunConfig.read(path)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        RunConfig.read(tmp_path / "config.json")


def test_an_unknown_agent_in_a_file_is_refused_when_it_is_made() -> None:
    with pytest.raises(UserError, match="did you mean lql"):
        RunConfig("Hopper-v4", agent="llql").make_agent(Spec(1, 1))


def test_a_crash_while_writing_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.json"
    RunConfig("Hopper-v4").write(path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match=r"cannot write .*: No space left"):
            RunConfig("Ant-v4").write(path)
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]
    assert RunConfig.read(path) == RunConfig("Hopper-v4")


def test_paths_and_numpys_numbers_will_do(tmp_path: Path) -> None:
    own = {"gamma": np.float32(0.5), "hidden": np.array([8, 8]), "clip": np.bool_(False)}
    config = RunConfig(
        "Hopper-v4", iterations=np.int64(7), seed=np.uint8(3), out=tmp_path / "x",
        action_bound=np.array(2.0), hyperparameters=own,
    ).resolved()  # fmt: skip
    assert (config.iterations, config.seed, config.out) == (7, 3, str(tmp_path / "x"))
    assert type(config.iterations) is int and type(config.action_bound) is float
    values = config.hyperparameters
    assert (values["gamma"], values["hidden"], values["clip"]) == (0.5, (8, 8), False)
    config.write(tmp_path / "config.json")
    assert RunConfig.read(tmp_path / "config.json") == config


def test_one_tracker_or_a_list_of_them_will_do() -> None:
    for given in ("wandb", ["wandb"], ("wandb",)):
        run = RunConfig("Hopper-v4", track=given)  # type: ignore[arg-type]
        assert run.resolved().track == ("wandb",)


def test_an_agent_of_ones_own_is_named_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from langevinrl.agents.lql import LQL\n\n\nclass Mine(LQL): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = RunConfig("Hopper-v4", agent="mine:Mine", hyperparameters={"num_steps": 3})
    assert type(config.make_agent(Spec(3, 2))).__name__ == "Mine"
    assert config.resolved().out == "runs/mine-Mine-Hopper-v4-0"
