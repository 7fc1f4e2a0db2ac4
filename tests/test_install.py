"""The wheel in an empty environment without extras; slow, and needs the package index."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]
ROOT = Path(__file__).parent.parent
EXTRAS = ("mujoco", "matplotlib", "wandb", "tensorboardX", "ray", "optuna", "onnxruntime")
LEARN = """
import langevinrl as lrl, numpy as np
tiny = {"warmup": 300, "batch_size": 8, "hidden": [8], "eval_episodes": 1}
model = lrl.Model("nclql-auto", "Pendulum-v1", **tiny)
model.learn(iterations=20, progress_bar=False)
model.save("pendulum")
print(model.predict(np.ones(3, np.float32))[0].tobytes().hex())
"""
PREDICT = """
import langevinrl as lrl, numpy as np
print(lrl.Model.load("pendulum").predict(np.ones(3, np.float32))[0].tobytes().hex())
"""
NUMPY = """
import importlib.util, numpy as np
from numpy_policy import NumpyPolicy
assert importlib.util.find_spec("jax") is None
assert NumpyPolicy("policy.npz", seed=0)(np.zeros((5, 3))).shape == (5, 1)
"""


class Place:
    """A virtual environment and a working directory."""

    def __init__(self, folder: Path, *packages: str) -> None:
        self.bin, self.work = folder / "env" / "bin", folder / "work"
        venv.create(folder / "env", with_pip=True)
        self.work.mkdir()
        limits = ["-c", str(ROOT / "constraints.txt")]
        self.run("python", "-m", "pip", "install", "--quiet", *limits, *packages)

    def run(self, program: str, *words: str) -> str:
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS")}
        command = [str(self.bin / program), *words]
        done = subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The wheel, built from a copy of the sources, with its dependencies only."""
    folder = tmp_path_factory.mktemp("clean")
    shutil.copytree(ROOT / "src", folder / "tree/src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree")
    words = ["wheel", "--quiet", "--no-deps", "-w", str(folder), str(folder / "tree")]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (wheel,) = folder.glob("*.whl")
    return Place(folder, str(wheel))


def test_no_extra_is_installed(clean: Place) -> None:
    missing = f"all(find_spec(name) is None for name in {EXTRAS})"
    clean.run("python", "-c", f"from importlib.util import find_spec; assert {missing}")


def test_help_takes_less_than_a_second(clean: Place) -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        assert "train " in clean.run("langevinrl", "--help")
        times.append(time.perf_counter() - began)
    assert statistics.median(times) < 1.0, times


def test_core_package_trains_evaluates_and_exports(clean: Place, tmp_path: Path) -> None:
    words = "train nclql --env Pendulum-v1 --iterations 5 --warmup 300 --batch-size 16 --hidden 16 "
    words += "--eval-every 5 --eval-episodes 1 --out runs/pendulum"
    assert "5/5" in clean.run("langevinrl", *words.split())
    assert "nclql" in clean.run("langevinrl", "agents")
    assert "nclql" in clean.run("langevinrl", *"params --obs-dim 17 --act-dim 6".split())
    assert "return" in clean.run("langevinrl", *"evaluate runs/pendulum --episodes 1".split())
    clean.run("langevinrl", *"export runs/pendulum --format numpy --out policy.npz".split())
    bare = Place(tmp_path, "numpy")
    shutil.copy(clean.work / "policy.npz", bare.work)
    shutil.copy(ROOT / "src/langevinrl/export/numpy_policy.py", bare.work)
    bare.run("python", "-c", NUMPY)


def test_saved_model_acts_the_same_in_a_new_process(clean: Place) -> None:
    learned = clean.run("python", "-c", LEARN)
    assert clean.run("python", "-c", PREDICT) == learned
