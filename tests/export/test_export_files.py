"""Run folders in, files out, by Python and by the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.cli import main
from langevinrl.errors import UserError
from langevinrl.export import NumpyPolicy, export, files
from langevinrl.model import Model
from langevinrl.policies.chain import keyed_noise
from langevinrl.runs.evaluate import observation_seed

OBS = np.float32([[0.3, 2.0, 0.5], [0.1, 1.0, -0.4]])


def predicted(model: Model, obs: np.ndarray, seed_index: int) -> np.ndarray:
    """`predict` may hand back a pair, as Stable-Baselines3's tools expect."""
    action = model.predict(obs, seed_index=seed_index)
    return np.asarray(action[0] if isinstance(action, tuple) else action)


def test_a_run_acts_as_predict_does(tiny_run: Path, tmp_path: Path) -> None:
    model = Model.load(tiny_run)
    for seed_index in (0, 1):
        path = export(tiny_run, "numpy", tmp_path / f"{seed_index}.npz", seed_index=seed_index)
        policy = NumpyPolicy(path)
        noise = keyed_noise(files.read_policy(tiny_run, seed_index), observation_seed(OBS))
        want = predicted(model, OBS, seed_index)
        np.testing.assert_allclose(policy(OBS, np.asarray(noise)), want, rtol=0, atol=1e-4)


def test_the_command_line_writes_one_file(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "policy.npz"
    changes = ["--best-of", "4", "--steps-per-level", "1", "--num-levels", "2"]
    main(["export", str(tiny_run), "--out", str(out), *changes])
    assert str(out) in capsys.readouterr().out.replace("\n", "")
    with np.load(out, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        assert len(file["steps"]) == 2
    assert facts["best_of"] == 4 and facts["agent"] == "NCLQL" and facts["num_draws"] == 3


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--seed-index", "7"], "seed_index is 7; trained seeds: 2"),
        (["--num-levels", "9"], "num_levels is 9; expected from 2 to 3"),
        (["--out", "/proc/none/policy.npz"], "cannot write /proc/none/policy.npz"),
    ],
)
def test_slips_are_one_sentence(
    words: list[str], problem: str, tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["export", str(tiny_run), *words])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert problem in error and "Traceback" not in error


def test_formats_and_folders_are_checked(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean numpy"):
        export(tiny_run, "nunpy")
    with pytest.raises(UserError, match="not a run folder"):
        export(tmp_path)


@pytest.mark.parametrize(("number", "format"), list(enumerate(["numpy", "stablehlo", "onnx"])))
def test_the_page_on_deployment_loads_each_form(
    number: int, format: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"numpy": "numpy", "stablehlo": "flatbuffers", "onnx": "jax2onnx"}
    pytest.importorskip(needed[format])
    page = Path(__file__).parents[2] / "docs" / "deploy.md"
    sources = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert len(sources) == 3
    ending, _ = files.WRITERS[format]
    export(tiny_run, format, tmp_path / f"policy{ending}")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(sources[number], str(page), "exec"), names)
    assert np.all(np.abs(names["action"]) <= 2)
