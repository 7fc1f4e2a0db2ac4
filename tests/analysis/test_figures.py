"""Figures of run folders; none of it needs JAX."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from folders import make_run, make_runs

from langevinrl.analysis.figures import learning_curves, pyplot, write_figure, write_figures
from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.summary import summarise
from langevinrl.analysis.summary_figures import ablation
from langevinrl.errors import UserError


def test_panel_per_task_has_means_bands_and_seeds(tmp_path: Path) -> None:
    make_runs(tmp_path, tasks=("Hopper-v4", "Ant-v4"), seeds=2, points=3, episodes=2)
    groups = group_runs(find_runs([tmp_path]))
    figure = learning_curves(groups, "env_steps")
    ant, hopper = figure.axes
    assert (ant.get_title(), hopper.get_title()) == ("Ant-v4", "Hopper-v4")
    assert ant.get_xlabel() == "environment steps"
    assert len(ant.lines) == 2 * (2 + 1) and len(ant.collections) == 2
    (mean,) = [line for line in ant.lines if line.get_label() == "NC-LQL"]
    np.testing.assert_array_equal(mean.get_xdata(), [500, 1_000, 1_500])
    seeds = next(g.series for g in groups if (g.agent, g.env) == ("nclql", "Ant-v4"))
    np.testing.assert_allclose(mean.get_ydata(), (seeds[0].returns + seeds[1].returns) / 2)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["NC-LQL", "LQL"]
    written = write_figure(figure, tmp_path / "new" / "folder" / "curves.png").read_bytes()
    assert written.startswith(b"\x89PNG") and len(written) > 5_000


def test_one_seed_has_no_band_and_many_methods_no_single_seeds(tmp_path: Path) -> None:
    make_run(tmp_path / "one", points=3)
    (axis,) = learning_curves(group_runs(find_runs([tmp_path]))).axes
    assert len(axis.lines) == 1 and not axis.collections
    agents = ("lql", "sac", "qsm", "dipo")
    make_runs(tmp_path / "more", agents, tasks=["Hopper-v4"], seeds=2, points=2, episodes=2)
    (axis,) = learning_curves(group_runs(find_runs([tmp_path]))).axes
    assert len(axis.lines) == 5 and len(axis.collections) == 4
    pyplot().close("all")


def test_same_data_give_the_same_bytes_in_every_format(tmp_path: Path) -> None:
    make_run(tmp_path / "run", seeds=(0, 1), points=2)
    groups = group_runs(find_runs([tmp_path / "run"]))
    once = write_figures(learning_curves(groups), tmp_path / "a", "curves")
    again = write_figures(learning_curves(groups), tmp_path / "b", "curves")
    assert [path.name for path in once] == ["curves.png", "curves.svg", "curves.pdf"]
    assert [p.read_bytes() for p in once] == [p.read_bytes() for p in again]
    with pytest.raises(UserError, match="end it in png, svg, pdf"):
        write_figure(learning_curves(groups), tmp_path / "curves.xyz")
    pyplot().close("all")


def test_one_varied_setting_is_a_line_and_two_are_a_heat_map(tmp_path: Path) -> None:
    for w in (1.0, 10.0, 100.0):
        make_run(tmp_path / "one" / str(w), seeds=(0, 1), points=2, inverse_temperature=w, final=w)
    finals = summarise(find_runs([tmp_path / "one"])).finals
    (axis,) = ablation(finals).axes  # type: ignore[union-attr]
    (line,) = [line for line in axis.lines if line.get_linestyle() == "-"]
    np.testing.assert_allclose(line.get_ydata(), [one.mean.value for one in finals])
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "10", "100"]
    assert axis.get_xlabel() == "inverse_temperature"
    for w, t in ((1.0, 2), (1.0, 4), (9.0, 2)):
        make_run(tmp_path / "two" / f"{w}{t}", points=2, inverse_temperature=w, num_steps=t)
    finals = summarise(find_runs([tmp_path / "two"])).finals
    axis, _ = ablation(finals).axes  # type: ignore[union-attr]  # the second is its colour bar
    table = axis.images[0].get_array()
    assert table.shape == (2, 2) and np.isnan(np.ma.filled(table, np.nan)).sum() == 1
    assert ablation(finals[:1]) is None
    pyplot().close("all")


def test_settings_in_words_are_evenly_spaced(tmp_path: Path) -> None:
    for start in ("zero", "normal"):
        make_run(tmp_path / start, seeds=(0, 1), points=2, start=start)
    (axis,) = ablation(summarise(find_runs([tmp_path])).finals).axes  # type: ignore[union-attr]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["normal", "zero"]
    pyplot().close("all")


def test_no_evaluation_to_draw_is_an_error(tmp_path: Path) -> None:
    make_run(tmp_path / "begun", points=0)
    with pytest.raises(UserError, match="no evaluation"):
        learning_curves(group_runs(find_runs([tmp_path])))
    text = "agent,env,seed,iterations,return\nx,A-v4,0,5,1\n"
    (tmp_path / "evaluations.csv").write_text(text)
    with pytest.raises(UserError, match="no evaluation records hours"):
        learning_curves(group_runs(find_runs([tmp_path])), "hours")


def test_missing_matplotlib_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    make_run(tmp_path / "run", points=1)
    with pytest.raises(UserError, match=r"langevinrl\[plots\]"):
        learning_curves(group_runs(find_runs([tmp_path])))
