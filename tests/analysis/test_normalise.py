"""Interpolation, normalisation and selection of methods, on runs with known numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import make_run

from langevinrl.analysis.aggregates import aggregate, compare
from langevinrl.analysis.evaluations import Series
from langevinrl.analysis.grids import final_returns, mean_curve, on_grid, own_grid, shared_range
from langevinrl.analysis.groups import Group
from langevinrl.analysis.normalise import RANDOM_RETURNS, normalise, require_one_version
from langevinrl.analysis.paper import TASKS
from langevinrl.analysis.records import RunRecord, find_runs
from langevinrl.analysis.summary import summarise
from langevinrl.errors import UserError


def run(*returns: list[float], planned: int = 40, hours: float = 1.0) -> RunRecord:
    """Seeds evaluated at iterations 10, 20, ..."""
    series = []
    for seed, values in enumerate(returns):
        at = 10 * np.arange(1, len(values) + 1)
        series.append(Series(seed, at, 5 * at, at * hours, np.array(values)))
    return RunRecord(Path(), {"iterations": planned}, {}, series, "done")


def group(*runs: RunRecord, agent: str = "nclql", env: str = "Hopper-v4") -> Group:
    series = [one for record in runs for one in record.series]
    return Group(agent, env, agent.upper(), "#000000", {}, series, list(runs))


def test_returns_are_interpolated_and_never_extrapolated() -> None:
    one = group(run([1.0, 3.0, 4.0]), run([0.0, 2.0], planned=20))
    np.testing.assert_allclose(
        on_grid(one, "iterations", np.array([5.0, 15.0, 25.0, 31.0])),
        [[np.nan, 2.0, 3.5, np.nan], [np.nan, 1.0, np.nan, np.nan]],
    )
    np.testing.assert_allclose(on_grid(one, "env_steps", np.array([75.0]))[:, 0], [2.0, 1.0])
    np.testing.assert_allclose(on_grid(one, "progress", np.array([0.5]))[:, 0], [3.0, 0.0])
    assert shared_range([one], "iterations") == (10, 20)
    np.testing.assert_allclose(mean_curve(one), [[10, 20], [0.5, 2.5]])


def test_hours_of_several_seeds_get_an_even_grid() -> None:
    one = group(run([0.0, 1.0, 2.0]), run([0.0, 1.0, 2.0], hours=2.0))  # 10-30 and 20-60 hours
    np.testing.assert_allclose(own_grid(one, "hours"), [20, 25, 30])
    assert own_grid(group(run([0.0, 1.0]), run([0.0], hours=9.0)), "hours").size == 0


def test_final_returns_leave_out_unfinished_seeds() -> None:
    assert final_returns(group(run([1, 2, 3, 4], [1, 2, 3]))).tolist() == [4.0]
    assert final_returns(group(run([1, 2, 3, 4], [1, 2, 3])), 0.5).tolist() == [2.0, 2.0]


def test_min_max_is_over_methods_and_points() -> None:
    groups = [group(run([0.0, 4.0], [2.0, 8.0])), group(run([-1.0, 3.0]), agent="sac")]
    scale = normalise(groups)
    assert scale.bounds == {"Hopper": (-1.0, 6.0)}
    np.testing.assert_allclose(scale.score("Hopper", np.array([-1, 6, 13, np.nan])), [0, 1, 2, 0])
    assert "lowest and 1 the highest mean return" in scale.in_words()
    assert "Hopper -1 to 6" in scale.in_words()


def test_random_to_best_is_from_random_actions_to_the_best_final_return() -> None:
    groups = [group(run([900.0, 518.0289])), group(run([0.0, 100.0]), agent="sac")]
    scale = normalise(groups, "random-to-best")
    np.testing.assert_allclose(scale.score("Hopper", np.array([18.0288, 518.0289])), [0, 1])
    assert {f"{task}-v4" for task in TASKS} < set(RANDOM_RETURNS)


def test_random_returns_are_those_measured() -> None:
    path = Path(__file__).parents[2] / "results" / "reference" / "returns.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    assert {row[0]: float(row[3]) for row in rows if row[1] == "random"} == RANDOM_RETURNS


def test_impossible_normalisations_are_refused() -> None:
    five = group(run([0.0, 1.0]), env="Hopper-v5")
    with pytest.raises(UserError, match=r"is known for Hopper-v5 \(only for Hopper-v4\)"):
        normalise([five], "random-to-best")
    with pytest.raises(UserError, match="Hopper-v4 and Hopper-v5 are different tasks"):
        require_one_version([group(run([0.0, 1.0])), five])
    mixed = normalise([group(run([0.0, 1.0])), five])
    assert mixed.bounds == {"Hopper": (0.0, 1.0)}
    with pytest.raises(UserError, match="fewer than two different"):
        normalise([group(run([1.0]))])
    with pytest.raises(UserError, match="above random actions on Hopper-v4"):
        normalise([group(run([1.0]))], "random-to-best")
    with pytest.raises(UserError, match="did you mean min-max"):
        normalise([five], "minmax")  # type: ignore[arg-type]


def test_methods_without_a_finished_task_are_left_out_and_named() -> None:
    whole, cut = run([0, 1, 2, 3], [0, 1, 2, 5]), run([0, 1])
    groups = [
        group(whole), group(whole, env="Ant-v4"),
        group(run([0, 0, 1, 1], [0, 1]), agent="lql"), group(whole, agent="lql", env="Ant-v4"),
        group(whole, agent="sac"), group(cut, agent="sac", env="Ant-v4"),
    ]  # fmt: skip
    methods, notes = compare([one for one in groups if final_returns(one).size])
    assert list(methods) == ["NCLQL", "LQL"]
    assert notes == ["SAC is not in the aggregates: it has no finished seed on Ant."]
    found = aggregate(methods, normalise(groups))
    nclql, lql = found.methods
    assert found.tasks == ["Ant", "Hopper"] and (nclql.seeds, lql.seeds) == ([2, 2], [2, 1])
    assert nclql.progress[-1].value == pytest.approx(1.0)  # the best final mean on both tasks
    assert lql.curve is not None and np.isfinite(lql.curve.mean.value).all()
    assert lql.curve.progress[[0, -1]].tolist() == [0.25, 0.5]  # up to its shortest seed


def test_different_lengths_and_settings_are_noted(tmp_path: Path) -> None:
    make_run(tmp_path / "a", points=2, reward_scale=5.0)
    make_run(tmp_path / "b", "sac", points=3)
    make_run(tmp_path / "c", env="Ant-v4", points=2, reward_scale=0.2)
    summary = summarise(find_runs([tmp_path]))
    assert [one.label for one in summary.groups] == ["NC-LQL", "NC-LQL", "SAC"]
    lengths, settings = summary.notes[:2]
    assert lengths.startswith("Runs on Hopper are 200 and 300 iterations long;")
    assert settings == "NC-LQL has different settings on different tasks: reward_scale."
