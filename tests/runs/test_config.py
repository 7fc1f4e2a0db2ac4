"""Run configuration: defaults, validation, files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.errors import UserError, in_flags
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig
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


@pytest.mark.parametrize(
    ("fields", "evaluation"),
    [
        ({}, (50_000, 20)),  # a million iterations: 20 evaluations of 20 episodes
        ({"iterations": 200_000}, (10_000, 5)),  # 1,030,000 / 10 / 20 / 1,000
        ({"iterations": 1_000}, (250, 3)),
        ({"iterations": 3}, (3, 3)),
        ({"iterations": 1_000, "preset": "paper"}, (25, 20)),
        ({"iterations": 1_000, "eval_every": 7}, (7, 3)),
        ({"iterations": 1_000, "eval_episodes": 9}, (250, 9)),
        ({"iterations": 1_000, "env": "Pendulum-v1", "warmup": 99_000}, (250, 13)),
        ({"iterations": 1_000, "env": "Pendulum-v1", "warmup": 200_000}, (250, 20)),
        ({"iterations": 1_000, "env": "mine:make", "warmup": 200_000}, (250, 5)),
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


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("iterations", 0, "at least 1"),
        ("iterations", 1.5, "expected int"),
        ("seed", 2**32, "at most 4294967295"),
        ("num_envs", True, "expected int"),
        ("async_envs", "no", "expected bool"),
        ("action_bound", 0.0, "action_bound is 0.0; expected a finite number at least 1e-37"),
        ("action_bound", float("inf"), "finite"),
        ("warmup", 255, "less than one batch"),
        ("capacity", 29_999, "is less than warmup=30000"),
        ("out", 3, "expected str | None"),
        ("hyperparameters", [], "expected dict"),
        ("hyperparameters", {"gamma": 1.01}, "gamma is 1.01; expected a finite number at most 1"),
        ("hyperparameters", {"learning_rate": "fast"}, "expected float"),
        ("hyperparameters", {"step_size": -1e-4}, "at least 0"),
        ("hyperparameters", {"hidden": 8}, "hidden is 8; expected tuple[int, ...]"),
        ("hyperparameters", {"activation": "mush"}, "expected 'mish' or 'gelu' or 'relu'"),
        ("hyperparameters", {"spec": None}, "unknown field of nclql 'spec'"),
        ("env_kwargs", {"a": object()}, "pass a function"),
    ],
)
def test_bad_values_are_refused_with_the_expected_ones(
    field: str, value: Any, message: str
) -> None:
    assert message in refusal(**{field: value})


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


def test_paths_and_numpy_values_are_accepted(tmp_path: Path) -> None:
    own: dict[str, Any] = {"gamma": np.float32(0.5), "hidden": np.array([8, 8])}
    own |= {"clip": np.bool_(False), "reward_scale": 1}
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
