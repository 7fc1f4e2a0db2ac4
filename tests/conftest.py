"""Settings every test runs under, and what several files share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jax
import pytest
from tiny import TINY_AGENT, TINY_RUN

from langevinrl import Model
from langevinrl.runs.config import RunConfig
from langevinrl.runs.train import train

# Tests compile much and run little: plainer code, made much sooner, is fast enough.  JAX reads
# this when it first computes.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)

# Compiling is most of a tiny run: what one process compiled the others read from disk.  The first
# process names the place, the others inherit the name.
PROGRAMS = os.environ.get("LANGEVINRL_TEST_PROGRAMS") or tempfile.mkdtemp(prefix="langevinrl-")
if "LANGEVINRL_TEST_PROGRAMS" not in os.environ:
    os.environ["LANGEVINRL_TEST_PROGRAMS"] = PROGRAMS
    atexit.register(shutil.rmtree, PROGRAMS, ignore_errors=True)
# Nor do runs in processes of their own keep programs in the user's home.
os.environ["LANGEVINRL_CACHE"] = PROGRAMS
# Nor what they record of being the user's own.
os.environ["LANGEVINRL_STATE"] = os.path.join(PROGRAMS, "state")
SETTINGS = {
    # (B,) on (B, 1) would broadcast to (B, B) without a word; here it is an error.
    "jax_numpy_rank_promotion": "raise",
    "jax_compilation_cache_dir": PROGRAMS,
    "jax_persistent_cache_min_compile_time_secs": 0.2,
}
for name, value in SETTINGS.items():
    jax.config.update(name, value)  # type: ignore[no-untyped-call]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process for the tests of a file, unless it says otherwise: they share compilations."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed (.ci/run sets CI), a test that is skipped has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("CI") and session.exitstatus == 0:
        for report in skipped:
            print(f"skipped: {report.nodeid} {report.longrepr}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def tiny_fields() -> dict[str, Any]:
    """The fields of a tiny NC-LQL run on `toys:wide`, by the names Model and command line use."""
    return TINY_RUN | TINY_AGENT


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with those fields; to be read, not written to."""
    folder = tmp_path_factory.mktemp("tiny") / "run"
    config = RunConfig("toys:wide", out=str(folder), hyperparameters=TINY_AGENT, **TINY_RUN)
    return train(config, quiet=True)


@pytest.fixture(scope="session")
def model(tiny_run: Path) -> Model:
    """A trained model, to be asked and not taught."""
    return Model.load(tiny_run)


@pytest.fixture(scope="session")
def tiny(tiny_fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a model that learns as `tiny_run` did, but for how long."""
    return {name: value for name, value in tiny_fields.items() if name != "iterations"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
