"""Run configuration: defaults, validation, files."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.errors import UserError, in_flags
from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig, agent_fields
from langevinrl.types import Spec


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


def test_a_resolved_run_has_every_field(tmp_path: Path) -> None:
    RunConfig("Hopper-v4").resolved().write(tmp_path / "config.json")
    table = json.loads((tmp_path / "config.json").read_text())
    assert table.keys() == {f.name for f in dataclasses.fields(RunConfig)}
    assert [name for name, value in table.items() if value is None] == ["preset"]
    own = {f.name for f in dataclasses.fields(METHODS["nclql"].load())} - {"spec"}
    assert table["hyperparameters"].keys() == own
    assert table["out"] == "runs/nclql-Hopper-v4-0"


def test_hyperparameters_reach_the_agent() -> None:
    config = RunConfig("Hopper-v4", hyperparameters={"hidden": [8, 8], "num_levels": 4})
    agent = config.make_agent(Spec(3, 2))
    assert agent_fields(agent)["hidden"] == (8, 8)
    assert agent_fields(agent)["num_levels"] == 4
    assert hash(agent) == hash(config.make_agent(Spec(3, 2)))


@pytest.mark.parametrize("task", PAPER_ITERATIONS)
def test_the_papers_lengths(task: str) -> None:
    short = task in ("Pusher", "Reacher", "InvertedDoublePendulum")
    for version in ("v4", "v5"):
        config = RunConfig(f"{task}-{version}").resolved()
        assert config.iterations == (200_000 if short else 1_000_000)
        assert RunConfig(f"{task}-{version}", iterations=7).resolved().iterations == 7
    assert len(PAPER_ITERATIONS) == 9


def test_the_papers_protocol() -> None:
    config = RunConfig("Hopper-v4", preset="paper").resolved()
    assert (config.num_envs, config.warmup, config.warmup_steps) == (5, 30_000, 6_000)
    assert (config.batch_size, config.capacity, config.updates_per_iteration) == (256, 10**6, 1)
    assert (config.eval_every, config.eval_episodes) == (25_000, 20)


@pytest.mark.parametrize(
    ("fields", "evaluation"),
    [
        ({}, (50_000, 20)),  # a million iterations: 20 evaluations of 20 episodes
        ({"iterations": 200_000}, (10_000, 5)),  # 1,030,000 / 10 / 20 / 1,000
        ({"iterations": 1_000}, (50, 3)),
        ({"iterations": 3}, (1, 3)),
        ({"iterations": 1_000, "preset": "paper"}, (25, 20)),
        ({"iterations": 1_000, "eval_every": 7}, (7, 3)),
        ({"iterations": 1_000, "eval_episodes": 9}, (50, 9)),
        ({"iterations": 1_000, "env": "Pendulum-v1", "warmup": 99_000}, (50, 3)),
        ({"iterations": 1_000, "env": "Pendulum-v1", "warmup": 200_000}, (50, 5)),
        ({"iterations": 1_000, "env": "mine:make", "warmup": 200_000}, (50, 3)),
    ],
    ids=str,
)
def test_default_evaluations_follow_the_length(
    fields: dict[str, Any], evaluation: tuple[int, int]
) -> None:
    config = RunConfig(**({"env": "Hopper-v4"} | fields)).resolved()
    assert (config.eval_every, config.eval_episodes) == evaluation == config.evaluation


def test_seeds_and_warmup_in_vector_steps() -> None:
    assert RunConfig("x", seed=7, seeds=3).seed_list == [7, 8, 9]
    assert RunConfig("x", warmup=11, num_envs=5).warmup_steps == 3


def test_the_default_folder_has_safe_characters() -> None:
    config = RunConfig("a.b:f.<locals>.<lambda>", iterations=1, seed=2).resolved()
    assert config.out == "runs/nclql-a.b-f.-locals-.-lambda-2"
    assert RunConfig("toys/Timed-v0", iterations=1).resolved().out == "runs/nclql-toys-Timed-v0-0"


def test_a_task_outside_the_paper_needs_a_length() -> None:
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


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("iterations", 0, "at least 1"),
        ("iterations", 1.5, "expected int"),
        ("seed", 2**32, "from 0"),
        ("num_envs", True, "expected int"),
        ("async_envs", "no", "expected bool"),
        ("action_bound", 0.0, "no room"),
        ("action_bound", float("inf"), "finite"),
        ("warmup", 255, "less than one batch"),
        ("capacity", 29_999, "is less than warmup=30000"),
        ("out", 3, "expected str | None"),
        ("hyperparameters", [], "expected dict"),
        ("env_kwargs", {"a": object()}, "pass a function"),
    ],
)
def test_bad_values_of_the_run_are_refused(field: str, value: Any, message: str) -> None:
    found = refusal(**{field: value})
    assert message in found and field in found


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("gamma", 1.01, "from 0 to 1"),
        ("learning_rate", float("nan"), "finite"),
        ("learning_rate", "fast", "expected float"),
        ("step_size", -1e-4, "at least 0"),
        ("hidden", (8, 0), "at least 1"),
        ("hidden", 8, "expected tuple[int, ...]"),
        ("hidden", (), "expected at least one"),
        ("activation", "mush", "expected 'mish' or 'gelu' or 'relu'"),
        ("clip", "True", "expected bool"),
    ],
)
def test_bad_values_of_the_agent_are_refused(field: str, value: Any, message: str) -> None:
    found = refusal(hyperparameters={field: value})
    assert field in found and message in found


def test_an_integer_is_accepted_for_a_float() -> None:
    config = RunConfig("Hopper-v4", hyperparameters={"gamma": 0, "reward_scale": 1}).resolved()
    assert config.hyperparameters["gamma"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read"),
        ("[1]", "names no env"),
        ("{}", "names no env"),
        ('{"env": "Hopper-v4", "batchsize": 3}', "did you mean batch_size"),
        ('{"env": 7}', "expected str"),
        ('{"env": "Hopper-v4", "hyperparameters": []}', "expected dict"),
    ],
)
def test_a_file_without_a_configuration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        RunConfig.read(path)
    with pytest.raises(UserError, match="cannot read"):
        RunConfig.read(tmp_path / "absent.json")


def test_an_unknown_agent_is_refused_when_it_is_built() -> None:
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


def test_paths_and_numpy_values_are_accepted(tmp_path: Path) -> None:
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


def test_one_tracker_or_a_list_is_accepted() -> None:
    for given in ("wandb", ["wandb"], ("wandb",)):
        run = RunConfig("Hopper-v4", track=given)  # type: ignore[arg-type]
        assert run.resolved().track == ("wandb",)


def test_a_custom_agent_is_named_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from langevinrl.agents.lql import LQL\n\n\nclass Mine(LQL): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = RunConfig("Hopper-v4", agent="mine:Mine", hyperparameters={"num_steps": 3})
    assert type(config.make_agent(Spec(3, 2))).__name__ == "Mine"
    assert config.resolved().out == "runs/mine-Mine-Hopper-v4-0"
