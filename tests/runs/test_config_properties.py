"""Any configuration survives its file; any file is read or refused."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.runs.env_kwargs import parse_kwargs, write_kwargs

quick = settings(max_examples=60, deadline=None, database=None)
words = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
runs = st.builds(
    RunConfig,
    env=st.sampled_from(["Hopper-v4", "Pendulum-v1", "dm_control/cheetah-run-v0"]),
    agent=st.just("lql"),
    hyperparameters=st.fixed_dictionaries(
        {},
        optional={
            "gamma": st.floats(0, 1, width=32).filter(lambda number: not 0 < number < 1e-30),
            "hidden": st.lists(st.integers(1, 999), min_size=1, max_size=4).map(tuple),
            "num_steps": st.integers(1, 1000),
            "clip": st.booleans(),
            "activation": st.sampled_from(["mish", "gelu", "relu"]),
        },
    ),
    env_kwargs=st.dictionaries(words, values, max_size=3),
    iterations=st.integers(1, 2**31 - 1),
    seed=st.integers(0, 2**31),
    seeds=st.integers(1, 20),
    batch_size=st.integers(1, 512),
    warmup=st.integers(512, 10**6),
    capacity=st.integers(10**6, 10**7),
    out=st.none() | words,
    track=st.lists(st.sampled_from(["wandb", "mlflow"])).map(tuple),
    compilation_cache=st.booleans(),
)


def through_a_file(config: RunConfig) -> RunConfig:
    with tempfile.TemporaryDirectory() as place:
        config.write(Path(place) / "config.json")
        return RunConfig.read(Path(place) / "config.json", trust=True)


@quick
@given(runs)
def test_a_configuration_survives_its_file(config: RunConfig) -> None:
    assert through_a_file(config) == config
    if not config.mistakes():
        resolved = config.resolved()
        assert through_a_file(resolved) == resolved == resolved.resolved()


@quick
@given(
    st.dictionaries(st.sampled_from([f.name for f in dataclasses.fields(RunConfig)]), values).map(
        json.dumps
    )
    | st.text(max_size=200)
)
def test_any_file_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "config.json"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            config = RunConfig.read(path)
        except UserError:
            return
        config.mistakes()


@quick
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), values, max_size=4))
def test_env_kwargs_survive_the_command_line(table: dict[str, Any]) -> None:
    assert parse_kwargs(write_kwargs(table)) == table
