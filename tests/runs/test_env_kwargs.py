"""What is passed on to the environment reaches it, is written down and comes back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tiny import TINY_AGENT, TINY_RUN

from langevinrl.cli.train import read
from langevinrl.errors import UserError
from langevinrl.runs.config import FIELDS_WITHOUT_EFFECT, RunConfig
from langevinrl.runs.env_kwargs import parse_kwargs, write_kwargs
from langevinrl.runs.loop import Run
from langevinrl.sweeps.grid import job_id


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (["g=9.8", "low=-3", "name=slow"], {"g": 9.8, "low": -3, "name": "slow"}),
        (["flag=True", "other=false", "none=None"], {"flag": True, "other": False, "none": None}),
        (['{"a": [1, 2], "b": {"c": 1}}'], {"a": [1, 2], "b": {"c": 1}}),
        (["path=a=b", 'text="7"'], {"path": "a=b", "text": "7"}),
        ([], {}),
    ],
)
def test_words_and_back(words: list[str], table: dict[str, Any]) -> None:
    assert parse_kwargs(words) == table
    assert parse_kwargs(write_kwargs(table)) == table


@pytest.mark.parametrize("word", ["g", "=3", "{1: 2}", "a b=3"])
def test_words_that_say_nothing(word: str) -> None:
    with pytest.raises(ValueError, match=r"neither key=value|is not JSON"):
        parse_kwargs([word])


def test_the_command_line_and_the_file(tmp_path: Path) -> None:
    config = read("nclql", ["--env", "Pendulum-v1", "--env-kwargs", "g=3.5", "--seed", "4"])
    assert config.env_kwargs == {"g": 3.5} and config.seed == 4
    path = tmp_path / "config.json"
    dataclasses.replace(config, iterations=1).write(path)
    assert RunConfig.read(path).env_kwargs == {"g": 3.5}
    assert read(str(path), []).env_kwargs == {"g": 3.5}
    with pytest.raises(UserError, match="which JSON can hold"):
        RunConfig("Pendulum-v1", iterations=1, env_kwargs={"f": print}).resolved()


def test_they_reach_training_and_evaluation() -> None:
    config = RunConfig(
        "Pendulum-v1", env_kwargs={"g": 3.5}, hyperparameters=TINY_AGENT, **TINY_RUN
    ).resolved()
    run = Run(config)
    assert run.envs.vector.call("g") == [3.5] * 4
    assert run.env().get_wrapper_attr("g") == 3.5  # type: ignore[operator]  # what evaluation builds
    run.envs.close()


def test_a_job_without_them_keeps_its_id() -> None:
    """Sweeps that were begun before there was this field go on."""
    plain = RunConfig("Hopper-v4", iterations=5)
    table = dataclasses.asdict(plain)
    for name in (*FIELDS_WITHOUT_EFFECT, "env_kwargs", "n_step"):
        del table[name]
    before = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    assert job_id(plain) == before[:10]
    assert job_id(dataclasses.replace(plain, env_kwargs={"a": 1})) != job_id(plain)
