"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_an_eleventh_agent_opens_two_files(tmp_path: Path) -> None:
    """The page's agent and its row, in a copy of the tree, pass the contract suite and train."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    page = ROOT / "docs" / "adding-an-agent.md"
    (source,), (row,) = blocks(page, "python"), blocks(page, "text")
    package = tmp_path / "src" / "langevinrl"
    (package / "agents" / "shooting.py").write_text(source)
    registry = (package / "registry.py").read_text()
    head, _, tail = registry.partition('    "dpmd": Method(')
    (package / "registry.py").write_text(f'{head}{row}    "dpmd": Method({tail}')

    def run(*words: str) -> str:
        paths = os.pathsep.join([str(tmp_path / "src"), str(tmp_path / "tests")])
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, env=env | {"PYTHONPATH": paths},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = run("pytest", "-p", "no:cacheprovider", "tests/test_contract.py", "-k", "shooting")
    assert " passed" in said or re.search(r"^\.{8,}", said, flags=re.MULTILINE)
    words = "train shooting --env toys:golden --iterations 20 --warmup 300 --hidden 16 16 --out run"
    assert "20/20" in run("langevinrl", *words.split())


SMALLER = {
    "env, seed=0": "env, seed=0, warmup=300, hidden=(8, 8), eval_episodes=1, eval_every=2",
    "15_000": "2",
    "iterations=3_000, seeds=3": "iterations=2, warmup=300, eval_every=1, eval_episodes=1",
    "-200": "-1e9",  # met by the first evaluation
    "seed=0, warmup=1_000": "warmup=300, hidden=(8, 8), eval_episodes=1, eval_every=2",
    "iterations=3_000)": "iterations=2)",
}


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/your-environment.md"])
@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_the_python_of_the_docs_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it stands there, but for the length of the runs."""
    monkeypatch.chdir(tmp_path)
    sources = blocks(ROOT / page, "python")
    assert sources
    names = {"__name__": "docs"}  # blocks of one page go on from one another
    for source in sources:
        for long, short in SMALLER.items():
            source = source.replace(long, short)
        exec(compile(source, page, "exec"), names)
    assert list((tmp_path / "runs").iterdir())


def test_the_commands_of_the_readme_exist() -> None:
    from langevinrl.cli import VERBS

    text = "\n".join(blocks(ROOT / "README.md", "sh"))
    verbs = re.findall(r"^langevinrl (\w+)", text, flags=re.MULTILINE)
    assert verbs
    assert set(verbs) <= set(VERBS)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_the_comparison_example_trains_compares_and_draws(tmp_path: Path) -> None:
    """As it stands there, but for the length of the runs."""
    source = (ROOT / "examples" / "compare.py").read_text()
    lengths = '"iterations": 3_000, "warmup": 1_000'
    assert lengths in source
    short = '"iterations": 4, "warmup": 300, "hidden": [8], "batch_size": 8, "eval_episodes": 1'
    (tmp_path / "compare.py").write_text(source.replace(lengths, short))
    done = subprocess.run(
        [sys.executable, "compare.py", "out"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert sum("LQL" in row for row in rows) == 4 and "[" in rows[-1]
    assert (tmp_path / "out" / "report_files" / "figures" / "curves_iterations.png").exists()


def test_the_mixture_example_finds_both_modes_in_their_shares(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = (ROOT / "examples" / "sample_mixture.py").read_text()
    assert "agent" not in source.split('"""', 2)[2]
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(source, "sample_mixture.py", "exec"), names)
    shown = capsys.readouterr().out
    assert shown.startswith("share of the right mode") and "spread" in shown
    points, right = np.asarray(names["points"]), np.asarray(names["right"])
    assert abs(right.mean() - 0.7) < 0.05
    for some, centre in [(~right, [-2.0, 0.0]), (right, [2.0, 1.0])]:
        np.testing.assert_allclose(points[some].mean(0), centre, atol=0.08)
        np.testing.assert_allclose(points[some].std(0), 0.4, atol=0.05)
