"""Presets: values of an agent's fields and of its run's under a name, beside the agent."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from langevinrl import Model
from langevinrl.agents.lql import LQL
from langevinrl.cli.train import read
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.config import (
    FIELDS_WITHOUT_EFFECT,
    PRESET_FIELDS,
    RunConfig,
    agent_class,
    agent_fields,
)
from langevinrl.runs.loop import Run
from langevinrl.runs.presets import Default
from langevinrl.sweeps.grid import Grid, job_id, seeds_together
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.space import Search
from langevinrl.types import Spec

TASK = ["--env", "Pendulum-v1", "--iterations", "9"]
SWIFT = f"{__name__}:Swift"


@dataclass(frozen=True)
class Swift(LQL):
    """An agent whose presets set fields of the run as well."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "short": {"warmup": 1_000, "n_step": 3, "num_steps": 2},
        "slip": {"warmpu": 1_000, "iterations": 5},
        "small": {"batch_size": 300, "warmup": 299},
    }


def short(**fields: Any) -> RunConfig:
    return RunConfig("Pendulum-v1", SWIFT, preset="short", iterations=9, **fields)


def numbers(config: RunConfig) -> tuple[int, int, int, int]:
    own = config.hyperparameters["num_steps"]
    return config.warmup, config.n_step, config.batch_size, own


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_is_an_agent_that_differs_from_the_papers(name: str) -> None:
    kind = agent_class(name)
    for preset, values in kind.presets.items():
        agent = RunConfig("Pendulum-v1", name, preset=preset).make_agent(Spec(3, 1))
        own = {n: v for n, v in values.items() if n not in PRESET_FIELDS}
        assert agent_fields(agent) == agent_fields(kind(Spec(3, 1))) | own
        assert agent != kind(Spec(3, 1))


def test_the_ones_promised_are_there_and_the_default_is_the_papers() -> None:
    assert [name for name in METHODS if "fast" in agent_class(name).presets] == [
        "nclql", "lql", "sac",
    ]  # fmt: skip
    assert RunConfig("Pendulum-v1", iterations=9).resolved().preset == "paper"


def test_flags_stand_on_the_preset() -> None:
    config = read("nclql", ["--preset", "fast", "--num-levels", "7", *TASK])
    assert config.preset == "fast" and config.hyperparameters["num_levels"] == 7
    assert config.hyperparameters["learning_rate"] == 1e-3
    assert read("nclql", ["--preset=fast", *TASK]).hyperparameters["num_levels"] == 5
    assert read("nclql", TASK).hyperparameters["num_levels"] == 10


def test_fields_of_a_model_stand_on_it_too() -> None:
    model = Model("nclql", "Pendulum-v1", preset="fast", learning_rate=2e-3, iterations=9)
    fields = model.config.resolved().hyperparameters
    assert (fields["num_levels"], fields["learning_rate"]) == (5, 2e-3)


def test_a_run_is_what_its_fields_say_whatever_the_preset_was_called(tmp_path: Path) -> None:
    fast = RunConfig("Pendulum-v1", preset="fast", iterations=9).resolved()
    fast.write(tmp_path / "config.json")
    again = RunConfig.read(tmp_path / "config.json")
    assert again == fast and again.preset == "fast"
    spelled = dataclasses.replace(fast, preset="paper")
    assert spelled.make_agent(Spec(3, 1)) == fast.make_agent(Spec(3, 1))
    assert job_id(spelled) == job_id(fast)
    with pytest.raises(UserError, match="spells out every field"):
        read(str(tmp_path / "config.json"), ["--preset", "paper"])


def test_a_preset_that_is_not_there_is_named_with_those_that_are() -> None:
    for agent, told in (("nclql", "did you mean fast"), ("qsm", "Known: paper")):
        with pytest.raises(UserError, match=rf"unknown preset of {agent} 'fsat'.*{told}"):
            RunConfig("Pendulum-v1", agent, preset="fsat", iterations=9).resolved()


def test_no_agent_has_a_field_that_a_run_has() -> None:
    run = {f.name for f in dataclasses.fields(RunConfig)}
    for name in METHODS:
        assert run.isdisjoint(f.name for f in dataclasses.fields(agent_class(name)))
    assert {"warmup", "batch_size", "n_step", "num_envs"} <= set(PRESET_FIELDS) <= run


def test_a_preset_sets_what_was_not_given_of_the_run() -> None:
    assert numbers(short().resolved()) == (1_000, 3, 256, 2)
    assert numbers(short(n_step=5).resolved()) == (1_000, 5, 256, 2)
    given = short(warmup=30_000, n_step=1, hyperparameters={"num_steps": 7})
    assert numbers(given.resolved()) == (30_000, 1, 256, 7)
    later = dataclasses.replace(RunConfig("Pendulum-v1", SWIFT, iterations=9), preset="short")
    assert later.resolved() == short().resolved()
    assert later.resolved().resolved() == later.resolved()
    paper = dataclasses.replace(later, preset="paper").resolved()
    assert (paper.warmup, paper.n_step) == (30_000, 1)


def test_what_nobody_gave_is_marked_until_it_is_spelled_out() -> None:
    config = pickle.loads(pickle.dumps(RunConfig("Pendulum-v1", iterations=9, warmup=30_000)))
    assert type(config.warmup) is int and type(config.batch_size) is Default
    assert config.batch_size == 256 and repr(config.batch_size) == "256"
    kinds = {type(getattr(config.resolved(), name)) for name in PRESET_FIELDS}
    assert kinds == {int}


def test_a_flag_stands_over_it_also_with_the_papers_value() -> None:
    words = ["--preset", "short", *TASK]
    assert numbers(read(SWIFT, words)) == (1_000, 3, 256, 2)
    given = read(SWIFT, [*words, "--warmup", "30000", "--n-step=1"])
    assert numbers(given) == numbers(given.resolved()) == (30_000, 1, 256, 2)


@pytest.mark.parametrize(("preset", "default"), [("short", "1000"), ("paper", "30000")])
def test_help_shows_its_values(
    preset: str, default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(SWIFT, ["--preset", preset, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0 and f"before the first update (default: {default})" in shown


def test_keywords_of_a_model_stand_over_it() -> None:
    model = Model(SWIFT, "Pendulum-v1", preset="short", n_step=1, iterations=9)
    assert numbers(model.config.resolved()) == (1_000, 1, 256, 2)
    assert model.config.warmup == 1_000  # already, as learn() counts by such fields


def test_a_run_that_was_not_resolved_has_it_too() -> None:
    run = Run(short(warmup=256, capacity=600))
    run.envs.close()
    assert (run.config.warmup, run.config.n_step) == (256, 3)


def test_its_name_in_a_file_sets_nothing_that_is_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    given = short(warmup=30_000).resolved()
    given.write(path)
    assert RunConfig.parse(path).resolved() == given
    again = read(str(path), ["--trust", "--seed", "4"])
    assert (again.preset, *numbers(again)) == ("short", 30_000, 3, 256, 2)
    # One from before there was a field is the run that it was.
    table = json.loads(path.read_text())
    del table["n_step"]
    path.write_text(json.dumps(table))
    assert RunConfig.parse(path).resolved().n_step == read(str(path), ["--trust"]).n_step == 1
    # One written by hand, short, says what else it means by the preset.
    kept = ("env", "agent", "preset", "iterations", "warmup")
    path.write_text(json.dumps({name: table[name] for name in kept}))
    assert numbers(read(str(path), ["--trust"])) == (30_000, 3, 256, 2)


def test_an_agents_field_newer_than_a_file_is_not_the_presets(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    RunConfig("Pendulum-v1", preset="fast", iterations=9).resolved().write(path)
    table = json.loads(path.read_text())
    assert table["hyperparameters"].pop("reward_norm")
    path.write_text(json.dumps(table))
    again = RunConfig.read(path)
    assert again.preset == "fast" and not again.make_agent(Spec(3, 1)).reward_norm
    folder = SweepFolder.write(tmp_path / "sweep", [again])
    (job,) = folder.jobs.values()
    assert not job.config.make_agent(Spec(3, 1)).reward_norm
    # By hand, with some fields only: the preset sets the rest, of the agent and of the run.
    given = {"env": "Pendulum-v1", "preset": "fast", "iterations": 9, "out": "x", "eval_every": 3}
    path.write_text(json.dumps(given | {"hyperparameters": {"gamma": 0.98}}))
    by_hand = RunConfig.read(path).resolved()
    assert by_hand.batch_size == 64 and by_hand.hyperparameters["reward_norm"]


def test_sweeps_and_tuning_take_it(tmp_path: Path) -> None:
    base = {"env": "Pendulum-v1", "agent": SWIFT, "iterations": 9, "preset": "short"}
    found = Grid(base, {"n_step": [1, 3]}, seeds=[0, 1]).configs()
    assert [numbers(c) for c in found[::2]] == [(1_000, 1, 256, 2), (1_000, 3, 256, 2)]
    assert [numbers(c) for c in seeds_together(found)] == [numbers(c) for c in found[::2]]
    folder = SweepFolder.write(tmp_path / "sweep", found)
    assert [job_id(job.config) for job in folder.jobs.values()] == [job_id(c) for c in found]
    assert numbers(Search(base, {}, (0,)).config({"batch_size": 64})) == (1_000, 3, 64, 2)
    presets = Grid(base, {"preset": ["paper", "short"]}).configs()
    assert [c.warmup for c in presets] == [30_000, 1_000]


def test_jobs_without_one_are_called_as_ever() -> None:
    """As before presets could set fields of the run, and before there was n_step."""
    config = RunConfig("Pendulum-v1", "dipo", iterations=9, warmup=500).resolved()
    newer = (*FIELDS_WITHOUT_EFFECT, "env_kwargs", "n_step")
    table = {k: v for k, v in dataclasses.asdict(config).items() if k not in newer}
    digest = hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
    assert job_id(config) == digest[:10]
    assert job_id(dataclasses.replace(config, n_step=2)) != job_id(config)


def test_slips_in_a_preset_are_told() -> None:
    for call in (lambda c: c.resolved(), lambda c: c.make_agent(Spec(3, 1))):
        with pytest.raises(UserError) as caught:
            call(dataclasses.replace(short(), preset="slip"))
        assert "unknown field in preset 'slip' 'warmpu'; did you mean warmup?" in str(caught.value)
        assert "unknown field in preset 'slip' 'iterations'" in str(caught.value)  # not its matter
    with pytest.raises(UserError, match="warmup=299 is less than one batch of 300"):
        dataclasses.replace(short(), preset="small").resolved()
