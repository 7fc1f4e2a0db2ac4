"""Presets and run defaults: values that hold where the user gave none."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from langevinrl.agents.lql import LQL
from langevinrl.cli import train as train_verb
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig, agent_class, agent_fields
from langevinrl.runs.presets import RUN_DEFAULTS
from langevinrl.sweeps.grid import Grid, job_id, seeds_together
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.space import Search
from langevinrl.types import Spec

SWIFT, EAGER = f"{__name__}:Swift", f"{__name__}:Eager"
TASK = ["--env", "Pendulum-v1", "--iterations", "9"]


@dataclass(frozen=True)
class Swift(LQL):
    """An agent whose presets set fields of the run."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "short": {"warmup": 1_000, "num_steps": 2},
        "typo": {"warmpu": 1_000, "iterations": 5},
        "small": {"batch_size": 300, "warmup": 299},
    }


@dataclass(frozen=True)
class Eager(Swift):
    """An agent with defaults of its own for fields of the run."""

    run_defaults: ClassVar[dict[str, Any]] = {"warmup": 700, "batch_size": 64}


def short(agent: str = SWIFT, **fields: Any) -> RunConfig:
    return RunConfig("Pendulum-v1", agent, preset="short", iterations=9, **fields)


def read(what: str, words: list[str]) -> RunConfig:
    return train_verb.read(what, words)[0]


def numbers(config: RunConfig) -> tuple[int | None, int | None, int]:
    return config.warmup, config.batch_size, config.hyperparameters["num_steps"]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_preset_short(name: str) -> None:
    kind = agent_class(name)
    for preset, values in kind.presets.items():
        agent = RunConfig("Pendulum-v1", name, preset=preset).make_agent(Spec(3, 1))
        own = {n: v for n, v in values.items() if n not in RUN_DEFAULTS}
        assert agent_fields(agent) == agent_fields(kind(Spec(3, 1))) | own
    assert list(kind.presets) == ["short"]


def test_no_agent_has_a_field_that_a_run_has() -> None:
    run = {f.name for f in dataclasses.fields(RunConfig)}
    assert set(RUN_DEFAULTS) <= run
    for name in METHODS:
        assert run.isdisjoint(f.name for f in dataclasses.fields(agent_class(name)))


def test_given_values_override_the_preset() -> None:
    assert numbers(short().resolved()) == (1_000, 256, 2)
    given = short(warmup=30_000, hyperparameters={"num_steps": 7})
    assert numbers(given.resolved()) == (30_000, 256, 7)
    later = dataclasses.replace(RunConfig("Pendulum-v1", SWIFT, iterations=9), preset="short")
    assert later.resolved() == later.resolved().resolved() == short().resolved()
    assert numbers(dataclasses.replace(later, preset="paper").resolved())[:2] == (30_000, 256)


def test_run_defaults_hold_where_neither_user_nor_preset_sets_a_field() -> None:
    auto = RunConfig("Pendulum-v1", "nclql-auto", iterations=9).resolved()
    assert (auto.warmup, auto.batch_size, auto.reward_norm) == (5_000, 64, True)
    assert numbers(RunConfig("Pendulum-v1", EAGER, iterations=9).resolved())[:2] == (700, 64)
    assert numbers(short(EAGER).resolved()) == (1_000, 64, 2)
    assert numbers(short(EAGER, batch_size=256).resolved()) == (1_000, 256, 2)


def test_flags_override_the_preset_also_with_the_default_value() -> None:
    words = ["--preset", "short", *TASK]
    assert numbers(read(SWIFT, words)) == (1_000, 256, 2)
    assert numbers(read(SWIFT, ["--preset=short", *TASK, "--num-steps", "7"])) == (1_000, 256, 7)
    assert read("nclql-auto", [*TASK, "--no-reward-norm"]).reward_norm is False
    given = read(SWIFT, [*words, "--warmup", "30000"])
    assert numbers(given) == numbers(given.resolved()) == (30_000, 256, 2)


@pytest.mark.parametrize(
    ("agent", "preset", "default"),
    [(SWIFT, "short", "1000"), (SWIFT, "paper", "30000"), (EAGER, "paper", "700")],
)
def test_help_shows_the_values_that_hold(
    agent: str, preset: str, default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(agent, ["--preset", preset, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert f"unless the method or preset sets it (default: {default})" in shown


def test_a_written_run_is_independent_of_its_preset(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    given = short(warmup=30_000).resolved()
    given.write(path)
    assert RunConfig.parse(path).resolved() == given
    again = read(str(path), ["--trust", "--seed", "4"])
    assert (again.preset, *numbers(again)) == ("short", 30_000, 256, 2)
    renamed = dataclasses.replace(given, preset="paper")
    assert renamed.make_agent(Spec(3, 1)) == given.make_agent(Spec(3, 1))
    assert job_id(renamed) == job_id(given)
    with pytest.raises(UserError, match="sets every field"):
        read(str(path), ["--trust", "--preset", "paper"])
    # A file written by hand gets the rest from its preset.
    path.write_text(json.dumps({"env": "Pendulum-v1", "agent": SWIFT, "preset": "short"}))
    assert numbers(read(str(path), ["--trust", "--iterations", "9"])) == (1_000, 256, 2)


def test_sweeps_and_tuning_apply_presets(tmp_path: Path) -> None:
    base = {"env": "Pendulum-v1", "agent": SWIFT, "iterations": 9, "preset": "short"}
    found = Grid(base, {"batch_size": [32, 64]}, seeds=[0, 1]).configs()
    assert [numbers(c) for c in found[::2]] == [(1_000, 32, 2), (1_000, 64, 2)]
    assert [numbers(c) for c in seeds_together(found)] == [numbers(c) for c in found[::2]]
    folder = SweepFolder.write(tmp_path / "sweep", found)
    assert [job_id(job.config) for job in folder.jobs.values()] == [job_id(c) for c in found]
    assert numbers(Search(base, {}, (0,)).config({"batch_size": 64})) == (1_000, 64, 2)
    presets = Grid(base, {"preset": ["paper", "short"]}).configs()
    assert [c.warmup for c in presets] == [30_000, 1_000]


def test_job_ids_depend_on_every_field_with_an_effect() -> None:
    config = RunConfig("Pendulum-v1", "dipo", iterations=9, warmup=500).resolved()
    for change in ({"n_step": 2}, {"env_kwargs": {"a": 1}}, {"log_every": 7}):
        assert job_id(dataclasses.replace(config, **change)) != job_id(config)  # type: ignore[arg-type]
    elsewhere = dataclasses.replace(config, out="x", env_timeout=1.0, on_env_error="reset")
    assert job_id(elsewhere) == job_id(config)


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("typo", r"unknown field of .*Swift 'warmpu'[^$]*unknown field of .*Swift 'iterations'"),
        ("small", "warmup=299 is less than one batch of 300"),
        ("shrot", r"unknown preset of .*Swift 'shrot'; did you mean short"),
        ("fast", "removed in version 0.2; use the preset short, or the agent nclql-auto"),
        ("fast-balance", "or the agent nclql-auto, which needs none"),
    ],
)
def test_unknown_and_invalid_presets_are_refused(preset: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        dataclasses.replace(short(), preset=preset).resolved()
