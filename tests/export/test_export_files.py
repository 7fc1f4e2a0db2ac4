"""Files made from run folders, in Python and by the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from export_cases import code_blocks, make_agent

from langevinrl.cli import main
from langevinrl.errors import UserError
from langevinrl.export import NumpyPolicy, export, files
from langevinrl.export.trace import change_fields
from langevinrl.model import Model
from langevinrl.registry import METHODS
from langevinrl.runs.policy import observation_seed

OBS = np.float32([0.3, 2.0, 0.5])


@pytest.mark.parametrize("seed_index", [0, 1])
def test_file_of_a_run_acts_as_predict(seed_index: int, tiny_run: Path, tmp_path: Path) -> None:
    model = Model.load(tiny_run)
    policy = NumpyPolicy(export(tiny_run, out=tmp_path / "policy.npz", seed_index=seed_index))
    drawn = model.agent.noise(jax.random.key(observation_seed(OBS)), 1)
    noise = {"uniform.start": np.asarray(drawn.start), "normal.steps": np.asarray(drawn.steps)}
    predicted = model.predict(OBS, seed_index=seed_index)
    action = predicted[0] if isinstance(predicted, tuple) else predicted
    np.testing.assert_allclose(policy(OBS, noise), action, rtol=0, atol=1e-5)


def test_seed_decides_the_noise(tiny_run: Path, tmp_path: Path) -> None:
    path = export(tiny_run, out=tmp_path / "policy.npz")
    one, same, other = (NumpyPolicy(path, seed=seed)(OBS) for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_command_line_writes_one_file(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "policy.npz"
    changes = ["--best-of", "4", "--steps-per-level", "1"]
    main(["export", str(tiny_run), "--out", str(out), *changes])
    assert str(out) in capsys.readouterr().out.replace("\n", "")
    metadata = NumpyPolicy(out).metadata
    action = metadata["action_shape"]
    assert metadata["noise"] == {"uniform.start": [4, *action], "normal.steps": [3, 4, *action]}
    assert metadata["agent"] == "NCLQL"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--seed-index", "7"], "seed_index is 7; trained seeds: 2"),
        (["--flow-steps", "9"], "NCLQL has no flow_steps to change"),
        (["--out", "/proc/none/policy.npz"], "cannot write /proc/none/policy.npz"),
    ],
)
def test_mistakes_are_one_sentence(
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


@pytest.mark.parametrize(
    ("method", "fields", "changes"),
    [
        ("nclql", {}, {"best_of": 2, "steps_per_level": 3}),
        ("lql", {}, {"num_steps": 8}),
        ("qsm", {}, {"num_steps": 3}),
        ("mfp", {}, {"flow_steps": 1}),
        ("dpmd", {"best_of": 4}, {"best_of": 1}),
    ],
)
def test_fields_of_sampling_can_be_changed(
    method: str, fields: dict[str, Any], changes: dict[str, int]
) -> None:
    agent, state = make_agent(METHODS[method].load(), **fields)
    changed = change_fields(agent, state, changes)
    assert {name: getattr(changed, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("method", "fields", "changes", "problem"),
    [
        ("nclql", {}, {"steps_per_level": 0}, "steps_per_level is 0; expected at least 1"),
        ("nclql", {}, {"num_levels": 3}, "NCLQL has no num_levels to change.*best_of, steps_per"),
        ("nclql", {}, {"num_steps": 3}, "NCLQL has no num_steps to change"),
        ("dacer", {"num_steps": 5}, {"num_steps": 3}, "trained to denoise in 5 steps"),
        ("qsm", {"sampler": "ddpm"}, {"num_steps": 3}, "trained to denoise in"),
        ("sac", {}, {"best_of": 4}, "best_of has no effect when SAC is evaluated"),
    ],
)
def test_unsuited_changes_are_refused(
    method: str, fields: dict[str, Any], changes: dict[str, int], problem: str
) -> None:
    agent, state = make_agent(METHODS[method].load(), **fields)
    with pytest.raises(UserError, match=problem):
        change_fields(agent, state, changes)


@pytest.mark.parametrize(("number", "format"), list(enumerate(["numpy", "stablehlo", "onnx"])))
def test_page_on_deployment_loads_each_form(
    number: int, format: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"numpy": "numpy", "stablehlo": "flatbuffers", "onnx": "onnx"}[format])
    sources = code_blocks("deploy.md")
    assert len(sources) == 3
    ending, _ = files.WRITERS[format]
    export(tiny_run, format, tmp_path / f"policy{ending}")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(sources[number], "docs/deploy.md", "exec"), names)
    assert np.all(np.abs(names["action"]) <= 2)
