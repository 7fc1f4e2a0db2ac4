"""Keyword arguments of the environment: parsed, saved, and passed on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from langevinrl.cli.train import read
from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.runs.env_kwargs import parse_kwargs


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
def test_words_are_parsed(words: list[str], table: dict[str, Any]) -> None:
    assert parse_kwargs(words) == table


@pytest.mark.parametrize("word", ["g", "=3", "{1: 2}", "a b=3"])
def test_invalid_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="neither key=value nor a JSON object"):
        parse_kwargs([word])


def test_env_kwargs_from_the_command_line_and_a_file(tmp_path: Path) -> None:
    config, _ = read("nclql", ["--env", "Pendulum-v1", "--env-kwargs", "g=3.5", "--seed", "4"])
    assert config.env_kwargs == {"g": 3.5} and config.seed == 4
    path = tmp_path / "config.json"
    dataclasses.replace(config, iterations=1).write(path)
    assert RunConfig.read(path).env_kwargs == {"g": 3.5}
    assert read(str(path), [])[0].env_kwargs == {"g": 3.5}
    with pytest.raises(UserError, match="which JSON can hold"):
        RunConfig("Pendulum-v1", iterations=1, env_kwargs={"f": print}).resolved()
