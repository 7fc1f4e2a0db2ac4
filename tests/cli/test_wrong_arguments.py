"""Wrong arguments are rejected before anything is computed or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_cli import Capture, fails

from langevinrl.runs import loop


@pytest.fixture
def no_compute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fail if an agent is compiled, and work in an empty folder."""

    def refuse(*args: Any) -> None:
        raise AssertionError("compute has begun")

    monkeypatch.setattr(loop.compiled, "compile_agent", refuse)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("no_compute")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trian nclql --env Hopper-v4", "train"),
        ("train nclqll --env Hopper-v4", "nclql"),
        ("train nclql --env Hoper-v4", "Hopper-v4"),
        ("train nclql --env Hopper-v4 --sigma-maxx 3", "--sigma-max"),
        ("train nclql --env Hopper-v4 --batchsize 3", "--batch-size"),
        ("train nclql --env Hopper-v4 --activation mush", "mish"),
        ("train nclql --env CartPole-v1 --iterations 5", "Box"),
        ("train nclql --env Hopper-v4 --gamma 2", "at most 1"),
        ("train nclql --env Hopper-v4 --gamma two", "--gamma"),
        ("train nclql --env Hopper-v4 --warmup 3", "less than one batch"),
        ("train nclql --env Pendulum-v1", "--iterations"),
        ("train nclql", "--env"),
        ("train nowhere.json", "nowhere.json"),
        ("resume nowhere --iteration 3", "--iterations"),
        ("evaluate nowhere --episode 3", "--episodes"),
        ("params --obs-dim 3 --actdim 3", "--act-dim"),
        ("agents please", "please"),
        ("train NCLQL --env Hopper-v4", "did you mean nclql"),
        ("train nclql --env Hopper-v4 --tau=3", "unknown flag --tau; here it is --target-rate"),
        ("train nclql --env Hopper-v4 --total_timesteps 3", "here it is --iterations"),
        ("train nclql --env Hopper-v4 --hidden", "hidden has no numbers"),
        ("train nclql --env Hopper-v4 --warmup 300000 --capacity 3", "--capacity 3 is less than"),
        ("train nclql --env Hopper-v4 --env-kwargs wide", "neither key=value"),
        ("evaluate nowhere --mode mean", "noise-free"),
    ],
)
def test_wrong_argument_exits_with_2_and_a_hint(words: str, message: str, capsys: Capture) -> None:
    fails(*words.split())
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())


@pytest.mark.usefixtures("no_compute")
def test_wrong_names_in_a_config_file_are_rejected(capsys: Capture) -> None:
    path = Path("config.json")
    path.write_text('{"env": "Hopper-v4", "hyperparameters": {"sigma_maxx": 3.0}}')
    fails("train", "config.json")
    assert "did you mean sigma_max" in capsys.readouterr().err
    path.write_text('{"env": "Hopper-v4", "agent": "nclqll"}')
    fails("train", "config.json")
    assert "did you mean nclql" in capsys.readouterr().err


@pytest.mark.usefixtures("no_compute")
def test_existing_run_is_not_overwritten(tiny_run: Path, capsys: Capture) -> None:
    before = {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")}
    fails("train", str(tiny_run / "config.json"), "--out", str(tiny_run))
    printed = capsys.readouterr().err
    assert f"langevinrl resume {tiny_run}" in printed and "--out" in printed
    assert {path: path.stat().st_mtime_ns for path in tiny_run.rglob("*")} == before
