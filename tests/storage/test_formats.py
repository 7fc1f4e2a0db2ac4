"""Checkpoints of every format that was ever written still load, and go on as they would have."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from langevinrl.model import Model
from langevinrl.runs import train
from langevinrl.runs.config import RunConfig
from langevinrl.storage.checkpoint import MIGRATIONS
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.manifest import FORMAT, read_manifest

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUNS = sorted(FIXTURES.glob("run_format_*"))
LONGER = 6  # iterations, of which 4 are in the fixtures


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The state of the run that the fixtures are the beginning of."""
    config = RunConfig.read(RUNS[0] / "config.json")
    fields = vars(config) | {"out": str(tmp_path_factory.mktemp("whole") / "run")}
    folder = train.train(RunConfig(**fields | {"iterations": LONGER}), quiet=True)
    return load_file(RunFolder(folder).saved_checkpoints()[-1] / "state.safetensors")


def test_there_is_one_of_each_format_and_a_step_from_each_to_the_next() -> None:
    formats = {read_manifest(RunFolder(run).saved_checkpoints()[-1]).format for run in RUNS}
    assert formats == set(range(FORMAT + 1))
    assert len(MIGRATIONS) == FORMAT


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_it_acts_and_goes_on_as_if_it_had_never_been_cut(
    run: Path, tmp_path: Path, unbroken: dict[str, np.ndarray]
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    action, _ = Model.load(folder).predict(np.zeros(3, np.float32))
    assert np.isfinite(action).all()
    train.resume(folder, LONGER, quiet=True)
    newest = RunFolder(folder).saved_checkpoints()[-1]
    assert read_manifest(newest).format == FORMAT
    found = load_file(newest / "state.safetensors")
    assert found.keys() == unbroken.keys()
    for name, array in found.items():  # not to the bit: another JAX may round otherwise
        np.testing.assert_allclose(array, unbroken[name], rtol=1e-4, atol=1e-6, err_msg=name)
    old, new = ((place / "metrics.jsonl").read_text() for place in (run, folder))
    assert new.startswith(old) and len(new) > len(old)
