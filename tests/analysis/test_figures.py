"""Reports read copied folders on any machine: curves, a table, a picture, and no JAX."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from langevinrl.analysis.curves import print_table, read_curves
from langevinrl.analysis.figures import draw_curves
from langevinrl.errors import UserError
from langevinrl.runs.folder import EVALUATION_COLUMNS

LIGHT = [
    "langevinrl", "langevinrl.cli", "langevinrl.cli.train", "langevinrl.registry",
    "langevinrl.runs.folder", "langevinrl.runs.config", "langevinrl.analysis.figures",
    "langevinrl.envs.vector",
]  # fmt: skip


def write(
    folder: Path,
    seeds: dict[int, dict[int, list[float]]],
    agent: str = "lql",
    env: str = "Hopper-v4",
) -> Path:
    """An evaluations.csv: for every seed, the returns of the episodes at each iteration."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "evaluations.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, EVALUATION_COLUMNS, restval=0)
        table.writeheader()
        for seed, points in seeds.items():
            for iterations, returns in points.items():
                for episode, total in enumerate(returns):
                    row = {"agent": agent, "env": env, "seed": seed, "iterations": iterations}
                    table.writerow(row | {"episode": episode, "return": total})
    return folder


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5_000


def test_a_curve_is_the_mean_over_episodes_seed_by_seed(tmp_path: Path) -> None:
    points = {4: {20: [3.0, 5.0], 10: [1.0, 2.0]}, 5: {10: [0.0, 0.0], 20: [10.0, 20.0]}}
    (curve,) = read_curves([write(tmp_path / "a", points)])
    assert (curve.agent, curve.env) == ("lql", "Hopper-v4")
    np.testing.assert_array_equal(curve.iterations, [10, 20])
    np.testing.assert_array_equal(curve.returns, [[1.5, 4.0], [0.0, 15.0]])


def test_folders_of_one_agent_and_task_are_seeds_of_one_curve(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "a", {0: {10: [1.0], 20: [2.0]}}),
        write(tmp_path / "b", {0: {10: [3.0]}}),  # still running; the same seed number as well
        write(tmp_path / "c", {0: {5: [9.0]}}, agent="nclql"),
        write(tmp_path / "d", {0: {5: [9.0]}}, env="Ant-v4"),
    ]
    curves = read_curves(folders)
    assert [(c.agent, c.env) for c in curves] == [
        ("lql", "Hopper-v4"),
        ("nclql", "Hopper-v4"),
        ("lql", "Ant-v4"),
    ]
    np.testing.assert_array_equal(curves[0].iterations, [10])  # what all seeds have reached
    np.testing.assert_array_equal(curves[0].returns, [[1.0], [3.0]])


def test_half_a_line_of_a_run_in_progress_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, {0: {10: [1.0], 20: [2.0]}}) / "evaluations.csv"
    path.write_text(path.read_text() + "lql,Hopper-v4,0,30,150,0,-1")
    np.testing.assert_array_equal(read_curves([tmp_path])[0].iterations, [10, 20])


def test_a_real_run_is_read(tiny_run: Path) -> None:
    (curve,) = read_curves([tiny_run])
    assert (curve.agent, curve.env) == ("nclql", "toys:wide")
    np.testing.assert_array_equal(curve.iterations, [4, 8])
    assert curve.returns.shape == (2, 2)
    assert (abs(curve.returns - 7) <= 14).all()  # seven rewards of one plus an action in [-2, 2]


def test_the_table_has_at_most_ten_rows_and_always_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_table(write(tmp_path, {0: {i: [i / 2] for i in range(1, 38)}}))
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 11
    assert lines[0].split() == ["iterations", "return", "over", "1", "seed(s)"]
    assert lines[1].split() == ["1", "0.5"]
    assert lines[-1].split() == ["37", "18.5"]


def test_the_table_of_a_run_with_no_evaluation_yet_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_table(write(tmp_path / "a", {}))
    print_table(write(tmp_path / "b", {0: {10: [1.0]}, 1: {20: [1.0]}}))
    assert capsys.readouterr().out == ""


def test_a_picture_of_two_agents_on_two_tasks(tmp_path: Path) -> None:
    folders = [
        write(
            tmp_path / f"{agent}{env}",
            {0: {1: [0.0], 2: [1.0]}, 1: {1: [1.0], 2: [3.0]}},
            agent,
            env,
        )
        for agent in ("lql", "nclql")
        for env in ("Hopper-v4", "Ant-v4")
    ]
    out = draw_curves(folders, tmp_path / "new" / "folder" / "curves.png")
    assert is_png(out)


def test_a_picture_of_a_real_run(tiny_run: Path, tmp_path: Path) -> None:
    assert is_png(draw_curves([tiny_run], tmp_path / "curve.png"))


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no evaluation"):
        draw_curves([write(tmp_path, {})], tmp_path / "curve.png")
    with pytest.raises(UserError, match="not a run folder"):
        draw_curves([tmp_path / "nowhere"], tmp_path / "curve.png")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"langevinrl\[plots\]"):
        draw_curves([write(tmp_path, {0: {1: [0.0]}})], tmp_path / "curve.png")


@pytest.mark.parametrize("module", LIGHT)
def test_jax_is_not_loaded(module: str) -> None:
    """Reports must run where there is no JAX, and the command line must answer at once."""
    check = f"import sys, {module}; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)


def test_the_public_names_are_found_when_asked_for() -> None:
    import langevinrl

    for name in langevinrl.__all__:
        assert getattr(langevinrl, name)
    assert langevinrl.Model.__module__ == "langevinrl.model"
    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        _ = langevinrl.Modle
