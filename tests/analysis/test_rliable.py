"""Our statistics agree with rliable's for equal numbers of seeds.  Needs the network once.

rliable is not a dependency: it is installed into a separate environment, or taken from the one that
LANGEVINRL_RLIABLE names.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.analysis import statistics
from langevinrl.analysis.statistics import Estimate, estimate

SCRIPT = Path(__file__).with_name("rliable_values.py")
THRESHOLDS = np.linspace(-0.2, 1.4, 17)


def scores(seed: int, level: float) -> np.ndarray:
    """Draw seven runs of five tasks, rounded so that there are ties; (runs, tasks)."""
    return np.random.default_rng(seed).normal(level, 0.25, size=(7, 5)).round(1)


X, Y = scores(0, 0.7), scores(1, 0.55)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = Path(os.environ.get("LANGEVINRL_RLIABLE") or tmp_path_factory.mktemp("rliable"))
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        # Its bootstrap library, arch 7, does not work with pandas 3.
        words = [str(python), "-m", "pip", "install", "--quiet", "rliable", "pandas<3"]
        if subprocess.run(words, timeout=600).returncode:
            pytest.skip("rliable cannot be installed here")
    given = {"x": X.tolist(), "y": Y.tolist(), "thresholds": THRESHOLDS.tolist()}
    done = subprocess.run(
        [str(python), str(SCRIPT)], input=json.dumps(given), stdout=subprocess.PIPE, text=True,
        check=True, timeout=600,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def agrees(ours: Estimate, theirs: list[Any]) -> None:
    """Check that values are equal, and intervals up to the noise of two bootstraps."""
    np.testing.assert_allclose(ours.value, theirs[0], rtol=0, atol=1e-9)
    width = np.asarray(theirs[2]) - np.asarray(theirs[1])
    room = 0.1 * np.max(width) + 1e-9
    np.testing.assert_allclose(ours.low, theirs[1], rtol=0, atol=room)
    np.testing.assert_allclose(ours.high, theirs[2], rtol=0, atol=room)


@pytest.mark.slow
@pytest.mark.parametrize("name", statistics.AGGREGATES)
def test_aggregates_agree(theirs: dict[str, Any], name: str) -> None:
    agrees(estimate(statistics.AGGREGATES[name], list(X.T)), theirs[name])


@pytest.mark.slow
def test_profiles_agree(theirs: dict[str, Any]) -> None:
    ours = estimate(lambda s: statistics.profile(s, THRESHOLDS), list(X.T))
    agrees(ours, theirs["profile"])


@pytest.mark.slow
def test_probability_of_improvement_agrees(theirs: dict[str, Any]) -> None:
    ours = estimate(statistics.probability_of_improvement, list(X.T), list(Y.T))
    agrees(ours, theirs["improvement"])
