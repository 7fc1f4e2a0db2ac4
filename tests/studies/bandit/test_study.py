"""A small study of one method, and the quick study of all methods."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest

from langevinrl.studies.bandit import study as study_module
from langevinrl.studies.bandit.settings import COMMON, TRAININGS, BanditConfig
from langevinrl.studies.bandit.study import run_study


def test_small_study_writes_tables_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMON, "hidden", (16, 16))
    few = dataclasses.replace(TRAININGS["nclql"], updates=200, batch_size=64)
    monkeypatch.setitem(TRAININGS, "nclql", few)
    config = BanditConfig(
        out=tmp_path, methods=("nclql",), samples=300, sweep=(10.0,), workers=1, quick=True
    )
    drawn: list[Path] = []
    monkeypatch.setattr(study_module, "draw_figures", drawn.append)
    assert run_study(config) == tmp_path and drawn == [tmp_path]
    with (tmp_path / "table.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["method"] == "NC-LQL" and row["paper_sum"] == "0.993"
    with (tmp_path / "smoothing.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 10
    assert (tmp_path / "page.html").exists()
    assert json.loads((tmp_path / "settings.json").read_text())["runs"]["nclql"]["seeds"] == 1
    assert "jax" in json.loads((tmp_path / "versions.json").read_text())
    assert str(tmp_path) not in (tmp_path / "settings.json").read_text()


@pytest.mark.slow
def test_quick_study_covers_every_method(tmp_path: Path) -> None:
    run_study(BanditConfig(out=tmp_path, quick=True))
    with (tmp_path / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(TRAININGS)
    assert all(path.stat().st_size < 1_000_000 for path in tmp_path.rglob("*.*"))
