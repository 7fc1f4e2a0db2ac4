"""Sweep files and grids -> run configurations, and the hash that names a job."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.sweeps.grid import Grid, job_id, make_config, read_grid, seeds_together

EXPERIMENTS = sorted(Path(__file__).parents[2].glob("experiments/short_*.toml"))
BASE = {"env": "Pendulum-v1", "iterations": 10}


def test_grid_is_the_product_of_axes_cases_and_seeds() -> None:
    grid = Grid(
        {**BASE, "hidden": [8, 8]},
        axes={"agent": ["lql", "nclql"], "inverse_temperature": [1.0, 2.0]},
        cases=[{"batch_size": 8}, {"batch_size": 16, "step_size": 1e-3}],
        seeds=[3, 5, 9],
    )
    found = grid.configs()
    assert len(found) == 2 * 2 * 2 * 3
    assert {(c.agent, c.hyperparameters["inverse_temperature"], c.batch_size, c.seed)
            for c in found} == {(a, w, b, s) for a in ("lql", "nclql") for w in (1.0, 2.0)
                                for b in (8, 16) for s in (3, 5, 9)}  # fmt: skip
    assert all(c.hyperparameters["hidden"] == (8, 8) and c.env == "Pendulum-v1" for c in found)
    steps = {c.batch_size: c.hyperparameters["step_size"] for c in found}
    assert steps == {8: 1e-4, 16: 1e-3}


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_sweeps_of_the_experiments_are_different_valid_runs(path: Path) -> None:
    ids = [job_id(config) for config in read_grid(path).configs()]
    assert len(ids) == len(set(ids)) > 10


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base": {"agent": "sac"}}, "needs an env"),
        ({"base": {**BASE, "agent": "sak"}}, "did you mean sac"),
        ({"base": {**BASE, "inverse_temprature": 1.0}}, "did you mean inverse_temperature"),
        ({"base": {**BASE, "gamma": 2.0}}, "gamma is 2.0; expected"),
        ({"base": BASE, "axes": {"seed": [1, 2]}}, "listed as `seeds`"),
        ({"base": BASE, "axes": {"agent": "sac"}}, "expected a list"),
        ({"base": BASE, "axes": {"agent": []}}, "expected a list"),
        ({"base": BASE, "seeds": [1, 1]}, "different numbers"),
        ({"base": BASE, "seeds": 3}, "different numbers"),
        ({"base": BASE, "seeds": [[1]]}, "different numbers"),
        ({"base": BASE, "cases": "x"}, "expected a list of tables"),
        ({"base": BASE, "cases": [1]}, "expected a list of tables"),
        ({"base": BASE, "axes": "x"}, "are tables of fields"),
    ],
)
def test_mistakes_in_a_grid_are_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Grid(**fields).configs()


def test_field_of_another_method_is_refused() -> None:
    with pytest.raises(UserError, match="field of a run or of sac 'num_levels'"):
        make_config({**BASE, "agent": "sac", "num_levels": 3})


def test_toml_and_json_files_give_the_same_grid(tmp_path: Path) -> None:
    table = {"seeds": [1, 2], "base": BASE, "axes": {"agent": ["sac", "lql"]}}
    (tmp_path / "a.json").write_text(json.dumps(table))
    (tmp_path / "a.toml").write_text(
        'seeds = [1, 2]\n[base]\nenv = "Pendulum-v1"\niterations = 10\n'
        '[axes]\nagent = ["sac", "lql"]\n'
    )
    json_grid, toml_grid = read_grid(tmp_path / "a.json"), read_grid(tmp_path / "a.toml")
    assert json_grid.configs() == toml_grid.configs() and len(json_grid.configs()) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base = 3", r"no \[base\] table"),
        ("[base", "cannot read a sweep"),
        ("[base]\n[axis]\n", "did you mean axes"),
    ],
)
def test_file_that_is_no_sweep_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_grid(tmp_path / "a.toml")
    with pytest.raises(UserError, match="cannot read a sweep"):
        read_grid(tmp_path / "missing.toml")


def test_job_id_depends_on_the_run_but_not_on_its_folder() -> None:
    run = RunConfig(**BASE).resolved()  # type: ignore[arg-type]  # one dict of fields
    assert job_id(run) == job_id(dataclasses.replace(run, out="elsewhere"))
    changed = [
        dataclasses.replace(run, seed=1),
        dataclasses.replace(run, batch_size=7),
        dataclasses.replace(run, hyperparameters=run.hyperparameters | {"gamma": 0.9}),
    ]
    assert len({job_id(config) for config in [run, *changed]}) == 4


def test_equally_spaced_seeds_share_a_process() -> None:
    even = Grid(BASE, {"agent": ["sac", "lql"]}, seeds=[100, 200, 300]).configs()
    joined = seeds_together(even)
    assert [(c.agent, c.seed_list) for c in joined] == [
        ("sac", [100, 200, 300]),
        ("lql", [100, 200, 300]),
    ]
    assert seeds_together(Grid(BASE, seeds=range(4)).configs())[0].seed_list == [0, 1, 2, 3]
    uneven = Grid(BASE, seeds=[1, 2, 5]).configs()
    assert seeds_together(uneven) == uneven
