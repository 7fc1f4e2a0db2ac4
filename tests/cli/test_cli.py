"""Verbs of the command line."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from langevinrl import __version__, cli
from langevinrl.cli import train as train_verb
from langevinrl.registry import METHODS
from langevinrl.runs import finish, train
from langevinrl.runs.config import RunConfig

Capture = pytest.CaptureFixture[str]


def fails(*words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(list(words))
    assert caught.value.code == 2


def help_of(capsys: Capture, *words: str) -> str:
    """Return a help text without its frame and line breaks."""
    with pytest.raises(SystemExit) as caught:
        cli.main([*words, "--help"])
    assert caught.value.code == 0
    return " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())


def flags(fields: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in fields.items():
        flag = name.replace("_", "-")
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *map(str, values)]
    return words


def evaluations(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluations.csv").open(newline="") as file:
        return [
            {k: v for k, v in row.items() if k != "wall_seconds"} for row in csv.DictReader(file)
        ]


def metrics(folder: Path) -> str:
    return (folder / "metrics.jsonl").read_text()


def test_train_writes_a_run_and_prints_it(
    tiny_run: Path, tiny_fields: dict[str, Any], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "run"
    cli.main(["train", "nclql", "--env", "toys:wide", "--out", str(out), *flags(tiny_fields)])
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == str(out)
    assert "replay 0.00 GB" in shown and "8/8" in shown
    assert re.search(r"iterations +return +over 2 seed\(s\)\n +4 .*\n +8 ", shown)
    files = {"config.json", "metrics.jsonl", "evaluations.csv", "versions.json", "checkpoints"}
    assert {path.name for path in out.iterdir()} == files | {"curve.png"}
    assert evaluations(out) == evaluations(
        tiny_run
    )  # the command and the function give the same run
    assert metrics(out) == metrics(tiny_run)


def test_flag_overrides_a_config_file(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RunConfig] = []

    def record(config: RunConfig, overwrite: bool) -> Path:
        assert not overwrite
        asked.append(config)
        return tiny_run

    monkeypatch.setattr(train, "train", record)
    monkeypatch.setattr(train_verb, "show", lambda folder: None)
    cli.main(["train", str(tiny_run / "config.json"), "--seed", "9", "--gamma", "0.5"])
    (config,) = asked
    assert (config.seed, config.hyperparameters["gamma"]) == (9, 0.5)
    assert config.hyperparameters["hidden"] == (8, 8) and config.batch_size == 8
    assert config.out is None  # not the folder of the run it came from


def test_switches_come_in_pairs_and_strings_stay_strings() -> None:
    words = ["--env", "x", "--no-clip", "--async-envs", "--out", "true"]
    asked, overwrite = train_verb.read("nclql", words)
    assert not overwrite
    assert train_verb.read("nclql", ["--env", "x", "--overwrite"])[1]
    assert asked.hyperparameters["clip"] is False and asked.hyperparameters["normalise"] is True
    assert asked.async_envs is True
    assert asked.out == "true"  # a folder of that name
    fails("train", "nclql", "--env", "x", "--clip", "maybe")


def test_resume_extends_a_run(tiny_run: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    cli.main(["resume", str(folder), "--iterations", "10"])
    assert capsys.readouterr().out.splitlines()[-1] == str(folder)
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["000000008", "000000010"]
    old, new = evaluations(tiny_run), evaluations(folder)
    assert new[: len(old)] == old
    assert {row["iterations"] for row in new[len(old) :]} == {"10"}
    assert RunConfig.read(folder / "config.json").iterations == 10


def test_resume_rejects_shorter_runs_and_other_folders(
    tiny_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    fails("resume", str(tiny_run), "--iterations", "5")
    assert "at iteration 8" in capsys.readouterr().err
    fails("resume", str(tmp_path))
    assert "not a run folder" in capsys.readouterr().err


def test_evaluate_prints_the_same_line_per_seed_each_time(tiny_run: Path, capsys: Capture) -> None:
    words = ["evaluate", str(tiny_run), "--episodes", "3", "--seed", "1"]
    cli.main(words)
    first = capsys.readouterr().out
    lines = first.splitlines()
    assert [line.split(":")[0] for line in lines] == ["seed 3", "seed 4"]
    assert all(line.endswith("length 7, actions keyed") for line in lines)
    cli.main(words)
    assert capsys.readouterr().out == first
    cli.main([*words, "--mode", "noise-free"])
    other = capsys.readouterr().out
    assert all(line.endswith("actions noise-free") for line in other.splitlines())
    assert other.replace("noise-free", "keyed") != first
    fails("evaluate", str(tiny_run), "--mode", "mean")
    fails("evaluate", str(tiny_run), "--episodes", "0")
    fails("evaluate", str(tiny_run / "nowhere"))


def test_plot_draws_into_the_folder_or_the_given_file(
    tiny_run: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    cli.main(["plot", str(folder)])
    cli.main(["plot", str(folder), str(tiny_run)])
    cli.main(["plot", str(folder), "--x", "hours", "--out", "here.png"])
    cli.main(["plot", str(tmp_path), "--x", "env_steps"])  # a folder of runs
    printed = capsys.readouterr().out.split()
    found = [str(folder / "curve.png"), "curves.png", "here.png", str(tmp_path / "curve.png")]
    assert printed == found
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in printed)
    fails("plot")
    fails("plot", str(tmp_path / "nowhere"))
    fails("plot", str(folder), "--x", "days")
    fails("plot", str(folder), "--out", "here.xyz")


def test_agents_lists_the_registry(capsys: Capture) -> None:
    cli.main(["agents"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert all(len(line.split()) > 3 for line in lines)


def test_params_prints_the_papers_counts(capsys: Capture) -> None:
    cli.main(["params", "--obs-dim", "376", "--act-dim", "17", "--json"])
    counts = json.loads(capsys.readouterr().out)
    assert counts.keys() == METHODS.keys()
    assert counts["lql"] == 465_410
    assert counts["nclql"] == 475_746
    cli.main(["params", "--obs-dim", "376", "--act-dim", "17"])
    table = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert table["nclql"] == "475,746"
    fails("params", "--obs-dim", "0", "--act-dim", "17")
    fails("params", "--obs-dim", "3")


def test_train_help_lists_every_field_and_the_papers_symbols(capsys: Capture) -> None:
    text = help_of(capsys, "train", "nclql")
    for symbol in ("w:", "σ₁:", "σ_L:", "L:", "T:", "ε:", "γ:", "τ:", "κ:"):
        assert f" {symbol} " in text, symbol
    hidden = {"agent", "hyperparameters", "spec"}
    for kind in (RunConfig, METHODS["nclql"].load()):
        for field in dataclasses.fields(kind):
            if field.name not in hidden:
                assert re.search(rf"--{field.name.replace('_', '-')}[ ,]", text), field.name
    assert "random transitions before the first update" in text
    assert not re.search("--(agent|hyperparameters|spec|obs-dim)", text)


@pytest.mark.parametrize("agent", METHODS)
def test_train_help_explains_every_field_of_an_agent(agent: str, capsys: Capture) -> None:
    text = help_of(capsys, "train", agent)
    for field in dataclasses.fields(METHODS[agent].load()):
        if field.name != "spec":
            flag = field.name.replace("_", "-")
            found = re.search(rf"--{flag}(, --no-{flag})?( \S*[A-Z{{\[]\S*)* (.*?) \(default", text)
            assert found and len(found[3].split()) >= 2, field.name


@pytest.mark.parametrize(
    "verb",
    ["resume", "evaluate", "video", "plot", "report", "agents", "params", "bandit", "bench"],
)
def test_verb_has_a_help(verb: str, capsys: Capture) -> None:
    assert f"usage: langevinrl {verb}" in help_of(capsys, verb)


def test_all_verbs_are_listed_without_arguments(capsys: Capture) -> None:
    fails()
    shown = capsys.readouterr().out
    assert all(f"\n  {verb} " in shown for verb in cli.VERBS)
    places = Path(cli.__file__).parent.glob("*.py")
    assert {path.stem for path in places} == {*cli.VERBS, "__init__", "forms"}
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == shown
    cli.main(["--version"])
    assert capsys.readouterr().out.strip() == __version__
    fails("train", "--env", "Hopper-v4")  # without an agent it lists all
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in METHODS)


def test_interrupted_run_prints_how_to_resume_and_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stopped(words: list[str]) -> None:
        raise finish.Stopped(7, Path("runs/mine"))

    monkeypatch.setattr(train_verb, "main", stopped)
    with pytest.raises(SystemExit) as caught:
        cli.main(["train"])
    assert caught.value.code == 130
    assert "langevinrl resume runs/mine" in capsys.readouterr().out
