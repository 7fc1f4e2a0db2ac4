"""Return against time: the clock, the tables, and a contestant that really learns."""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import pytest

from langevinrl.bench.contestant import COLUMNS, Race
from langevinrl.bench.learning import (
    Contest,
    Row,
    draw,
    full_name,
    measure_learning,
    read_rows,
    tabulate,
    value_at,
)
from langevinrl.errors import UserError

ROWS = [
    Row("sac-fast", "Pendulum-v1", seed, 30.0 * i, 10.0 * i + seed)
    for seed in (0, 2)
    for i in range(5)
]


def burn(seconds: float) -> None:
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass


def test_the_clock_stands_still_while_a_contestant_is_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    race = Race(("sac-fast", "Pendulum-v1", 3), 0.2, str(path))

    def evaluate() -> float:
        burn(0.1)
        return 7.0

    over, steps = False, 0
    while not over:
        burn(0.01)
        steps += 1
        over = race.step(steps, evaluate)
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert rows[0][:3] == ["sac-fast", "Pendulum-v1", "3"] and rows[0][-1] == "7.00"
    assert 8 <= len(rows) <= steps <= 20  # else its own 0.1 s would have eaten the 0.2
    assert float(rows[-1][3]) >= 0.2  # the last one is of the end
    assert read_rows([path])[0].seed == 3


def test_a_table_tells_the_last_return_before_each_moment(tmp_path: Path) -> None:
    assert value_at(ROWS, 75.0) == 21.0  # seeds 0 and 2, both at 60 s
    assert value_at(ROWS[1:5], 10.0) is None
    table = tabulate(ROWS, 2.0)
    assert [list(column.cells) for column in table.columns] == [
        ["Pendulum-v1"], ["sac-fast"], ["11"], ["21"], ["41"],
    ]  # fmt: skip
    names = [full_name(name) for name in ("nclql-fast-x", "sbx-crossq", "sbx-crossq-equal", "lql")]
    assert names == ["NC-LQL fast-x", "SBX CrossQ", "SBX CrossQ equal", "LQL"]
    draw(ROWS, tmp_path / "learning.png")
    assert (tmp_path / "learning.png").stat().st_size > 5_000


def test_what_cannot_run_is_said_before_anything_does(tmp_path: Path) -> None:
    def contest(*names: str, minutes: float = 1.0, rivals: str = sys.executable) -> Contest:
        return Contest(names, ["Pendulum-v1"], [0], minutes, rivals, tmp_path / "out")

    with pytest.raises(UserError, match="unknown contestant 'sbx-sack'; did you mean sbx-sac"):
        measure_learning(contest("sbx-sack"))
    with pytest.raises(UserError, match="unknown contestant 'nclql-fsat'; did you mean nclql-fast"):
        measure_learning(contest("nclql-fsat"))
    with pytest.raises(UserError, match="unknown contestant 'qsm-fast'"):
        measure_learning(contest("qsm-fast"))
    with pytest.raises(UserError, match="expected some minutes"):
        measure_learning(contest("sac-fast", minutes=0))
    with pytest.raises(UserError, match="cannot import sbx: give the interpreter"):
        measure_learning(contest("sbx-sac", rivals="/nowhere/python"))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_contestant_learns_in_a_process_of_its_own(tmp_path: Path) -> None:
    contest = Contest(["sac-fast"], ["Pendulum-v1"], [0], 0.3, sys.executable, tmp_path)
    rows = measure_learning(contest)
    assert rows[-1].seconds >= 18 and (tmp_path / "learning.png").exists()
    began = time.monotonic()
    assert measure_learning(contest) == rows  # what is there is not made again
    assert time.monotonic() - began < 10
