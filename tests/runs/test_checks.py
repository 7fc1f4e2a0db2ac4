"""Bad values are refused before anything is built, all in one message."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import Any

import pytest

from langevinrl import Model, cli
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.checks import short
from langevinrl.runs.config import RunConfig, agent_class
from langevinrl.runs.train import train

NAN, HUGE = math.nan, 10**400
# Bad values of fields; none may start a run or end in a traceback.
OF_RUNS: list[tuple[str, Any]] = [
    ("env", ""), ("env", None), ("env", "Hoper-v4"), ("env", "no:where"), ("env", ":"),
    ("env", "os:"), ("env", ":Hopper-v4"), ("env", "a b:c"), ("env", "json:dumps.x"),
    ("agent", ""), ("agent", None), ("agent", "nclqll"), ("agent", "os:getcwd"), ("agent", ":"),
    ("agent", "a:b:c"), ("agent", "no.where:X"),
    ("iterations", 0), ("iterations", -1), ("iterations", 2**31), ("iterations", HUGE),
    ("iterations", 1.5), ("iterations", True), ("iterations", NAN),
    ("seed", -1), ("seed", 2**32), ("seed", HUGE), ("seed", "1"), ("seed", None),
    ("seeds", 0), ("seeds", 10**9), ("seed_step", 0), ("seed_step", 2**31),
    ("out", "a\0b"), ("out", "a\nb"), ("out", "\udcff"), ("out", 3), ("out", "x" * 300),
    ("num_envs", 0), ("num_envs", 10**9), ("num_envs", "5"), ("async_envs", "yes"),
    ("action_bound", 0.0), ("action_bound", -1.0), ("action_bound", math.inf),
    ("action_bound", 1e39), ("action_bound", 1e-50),
    ("warmup", -1), ("warmup", 3), ("warmup", 2**40), ("batch_size", 0), ("batch_size", 2**30),
    ("capacity", 1), ("capacity", 2**40), ("updates_per_iteration", 10**9),
    ("eval_every", 0), ("eval_episodes", 10**9), ("checkpoint_every", -5), ("log_every", 0),
    ("track", ("tensorbord",)), ("track", "wanb"), ("track", ["wanb"]), ("track", (3,)),
    ("env_kwargs", {"a": {1, 2}}), ("env_kwargs", {"a": NAN}), ("env_kwargs", [1]),
    ("env_kwargs", {1: 2}), ("hyperparameters", {"gama": 1}), ("hyperparameters", {3: 1}),
]  # fmt: skip
OF_AGENTS: list[tuple[str, str, Any]] = [
    ("nclql", "embedding_size", 1), ("nclql", "embedding_size", 3), ("nclql-auto", "num_levels", 1),
    ("nclql", "embedding_size", 2**31), ("nclql", "num_levels", 2**31), ("nclql", "hidden", (0,)),
    ("nclql", "hidden", (2**31,)), ("nclql", "hidden", ()), ("nclql", "hidden", "256"),
    ("nclql", "gamma", 1.5), ("nclql", "gamma", HUGE), ("nclql", "gamma", NAN),
    ("nclql", "learning_rate", 1e-50), ("nclql", "learning_rate", 1e39),
    ("nclql", "inverse_temperature", -1.0), ("nclql", "sigma_min", 1.0), ("nclql", "best_of", 0),
    ("nclql", "best_of", 2**63), ("nclql", "clip", 1), ("nclql", "activation", "mush"),
    ("lql", "num_steps", 2**63), ("sac", "initial_alpha", 0.0), ("dacer", "initial_alpha", 0.0),
    ("dacer", "num_gaussians", 300), ("dacer", "schedule_scale", 0.0),
    ("dipo", "schedule_scale", 1e6), ("dipo", "schedule_scale", -0.1),
    ("qsm", "decay_start", 2**31),
    ("dpmd", "statistics_rate", 5.0), ("dpmd", "noise_scale", 0.0), ("qvpo", "entropy_decay", 0),
    ("qvpo", "policy_best_of", -1), ("mfp", "flow_steps", 0), ("sdac", "num_noises", 10**9),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), OF_RUNS, ids=lambda value: short(value)[:40])
def test_a_bad_value_of_a_run_is_refused_before_a_folder_is_made(
    name: str, value: Any, here: Path
) -> None:
    fields: dict[str, Any] = {"env": "Pendulum-v1", "iterations": 4, "out": "run"} | {name: value}
    with pytest.raises(UserError) as caught:
        train(RunConfig(**fields))
    assert len(str(caught.value)) < 2_000
    assert os.listdir(here) == []


@pytest.mark.parametrize(("agent", "name", "value"), OF_AGENTS, ids=lambda value: short(value)[:40])
def test_a_bad_value_of_an_agent_is_refused_before_a_folder_is_made(
    agent: str, name: str, value: Any, here: Path
) -> None:
    with pytest.raises(UserError, match=name):
        Model(agent, "Pendulum-v1", out="run", **{name: value}).learn(1)
    assert os.listdir(here) == []


def test_the_last_of_several_seeds_must_be_valid(here: Path) -> None:
    config = RunConfig("Hopper-v4", seed=2**32 - 1, seeds=2)
    assert "seeds=2 from seed=4294967295 ends at 4294967296" in config.mistakes()[0]
    assert RunConfig("Hopper-v4", seed=2**32 - 2, seeds=2).mistakes() == []
    assert RunConfig("Hopper-v4", seed=5, seeds=3, seed_step=2**31 - 1).mistakes()


@pytest.mark.parametrize("agent", METHODS)
def test_every_default_is_valid(agent: str) -> None:
    assert RunConfig("Hopper-v4", agent=agent).mistakes() == []
    for field in dataclasses.fields(agent_class(agent)):
        if field.type == "float":  # 1e39 is infinite in 32 bits
            bad = RunConfig("Hopper-v4", agent=agent, hyperparameters={field.name: 1e39})
            assert field.name in bad.mistakes()[0]


def test_all_mistakes_are_reported_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "train nclql --env Hoper-v4 --gamma 2 --embedding-size 1 --batch-size 0 --track wanb"
    with pytest.raises(SystemExit) as caught:
        cli.main(words.split())
    lines = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and lines[0] == "langevinrl: 5 mistakes:"
    for near in ("Hopper-v4", "at most 1", "embedding_size is 1", "batch_size is 0", "wandb"):
        assert sum(near in line for line in lines) == 1, near
    assert os.listdir(here) == []


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"env": 3, "sed": 1, "batch_size": -1}')
    with pytest.raises(UserError) as caught:
        RunConfig.read(tmp_path / "config.json")
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'config.json'}: 3 mistakes:\n")
    assert "did you mean seed" in text and "env is 3" in text and "batch_size is -1" in text


def test_long_values_are_shortened() -> None:
    assert short(HUGE) == "a number of 401 digits" and len(short("x" * 10**6)) < 120
