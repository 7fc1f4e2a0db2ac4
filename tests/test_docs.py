"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from langevinrl.cli import VERBS
from langevinrl.registry import METHODS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("[!_]*.md"))]
PAGES += sorted((DOCS / "methods").glob("*.md"))
ELEVENTH = DOCS / "adding-an-agent.md"
# Their Python is a file of the package, or needs files, extras or a renderer: tested elsewhere.
ELSEWHERE = {ELEVENTH, DOCS / "deploy.md", DOCS / "logging.md"}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# What makes a run tiny, for Model and for RunConfig.
TINY = "warmup=300, batch_size=8, capacity=2_000, eval_every=1_000, eval_episodes=1"
TINY_MODEL, TINY_RUN = f"{TINY}, hidden=(8,)", f"{TINY}, hyperparameters={{'hidden': (8,)}}"


def shorten(source: str) -> str:
    """The same program with runs a thousandth as long, of tiny networks."""
    sizes = "warmup|batch_size|capacity|eval_every|eval_episodes|hidden"
    source = re.sub(rf",\s*(?:{sizes})=(?:[\d_]+|\([^)]*\))", "", source)
    source = re.sub(
        r'(Model\("\w+", (?:"[^"]+"|\w+(?:\.\w+)?(?:\([^()]*\))?))', rf"\1, {TINY_MODEL}", source
    )
    source = re.sub(r'(RunConfig\("[^"]+")', rf"\1, {TINY_RUN}", source)
    source = re.sub(
        r"(iterations|total_timesteps)=([\d_]+)",
        lambda m: f"{m[1]}={max(2, int(m[2]) // 1000)}",
        source,
    )
    return source.replace("> -200", "> -1e9")  # met by the first evaluation


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to run in, with one finished run lying there as if from yesterday."""
    shutil.copytree(ROOT / "results/ten/sac-Pendulum-v1-1", tmp_path / "runs/yesterday")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


WITH_PYTHON = [page for page in PAGES if page not in ELSEWHERE and blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_the_python_of_a_page_runs(page: Path, work: Path) -> None:
    """Its blocks one after the other, as they stand there but for the length of the runs."""
    source = "\n".join(blocks(page, "python"))
    exec(compile(shorten(source), page.name, "exec"), {"__name__": "docs"})


EXAMPLES = {
    "train_and_plot.py": "curve.png",
    "own_environment.py": "config.json",
    "resume.py": "cut/resumes.jsonl",
    "evaluate_and_record.py": "episode.csv",
    "callback.py": "best.safetensors",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there but for the length of the runs, and it leaves what it says."""
    source = (ROOT / "examples" / name).read_text()
    assert len(source.splitlines()) <= 60, "more than a screen"
    monkeypatch.setattr(sys, "argv", [name, "out"])
    exec(compile(shorten(source), name, "exec"), {"__name__": "__main__"})
    assert (work / "out" / EXAMPLES[name]).exists()


def test_every_example_is_tested_and_listed() -> None:
    there = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    assert there >= {*EXAMPLES, "compare.py", "quickstart.ipynb"}
    listed = set(re.findall(r"^\| `(\w+\.\w+)` ", (DOCS / "start.md").read_text(), re.MULTILINE))
    assert listed >= {*EXAMPLES, "compare.py", "quickstart.ipynb"}
    assert listed - {"sample_mixture.py"} <= there


def test_the_notebook_runs(work: Path) -> None:
    """Its code cells one after the other; outputs are not stored, so that none can be stale."""
    notebook = json.loads((ROOT / "examples" / "quickstart.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells and not any(cell["outputs"] for cell in cells)
    source = "\n".join("".join(cell["source"]) for cell in cells)
    exec(compile(shorten(source), "quickstart", "exec"), {"__name__": "__main__"})
    assert (work / "quickstart-model" / "config.json").exists()


def test_the_comparison_example_trains_compares_and_draws(tmp_path: Path) -> None:
    """As it stands there, but for the length of the runs and with one temperature."""
    source = (ROOT / "examples" / "compare.py").read_text()
    short = {
        '"iterations": 3_000, "warmup": 1_000': '"iterations": 4, "warmup": 300, "hidden": [8], '
        '"batch_size": 8, "eval_episodes": 1',
        "[50.0, 500.0]": "[50.0]",
    }
    for long, brief in short.items():
        assert long in source
        source = source.replace(long, brief)
    (tmp_path / "compare.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "compare.py", "out"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert sum("LQL" in row for row in rows) == 2 and " to " in rows[-1]
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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=name_of)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    text = "\n".join(blocks(page, "sh"))
    assert set(re.findall(r"^langevinrl (\w+)", text, flags=re.MULTILINE)) <= set(VERBS)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE):
        assert f"\n{target}:" in makefile


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """On the site Sphinx sees to it; this is for those who read the files."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        place = Path(os.path.normpath(page.parent / link))
        assert place.exists(), f"{page}: {link}"


@pytest.mark.parametrize("name", METHODS)
def test_every_number_a_method_logs_is_explained(name: str) -> None:
    source = ast.parse((ROOT / "src/langevinrl/agents" / f"{name}.py").read_text())
    words = [node.value for node in ast.walk(source) if isinstance(node, ast.Constant)]
    logged = {word for word in words if isinstance(word, str) and re.fullmatch(r"\w+/\w+", word)}
    assert logged
    shared = DOCS / "logging.md"
    text = (DOCS / "methods" / f"{name}.md").read_text()
    text += shared.read_text() if shared.exists() else ""
    assert [word for word in sorted(logged) if f"`{word}`" not in text] == []


def test_an_eleventh_agent_opens_two_files(tmp_path: Path) -> None:
    """The page's agent and its row, in a copy of the tree, pass the contract suite and train."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (source,), (row,) = blocks(ELEVENTH, "python"), blocks(ELEVENTH, "text")
    package = tmp_path / "src" / "langevinrl"
    (package / "agents" / "shooting.py").write_text(source)
    registry = (package / "registry.py").read_text()
    head, _, tail = registry.partition('    "dpmd": Method(')
    (package / "registry.py").write_text(f'{head}{row}    "dpmd": Method({tail}')

    words = "train shooting --env toys:golden --iterations 20 --warmup 300 --hidden 16 16 --out run"
    program = (
        "import pytest; from langevinrl.cli import main;"
        "assert pytest.main(['-p', 'no:cacheprovider', 'tests/test_contract.py', '-k', 'shooting'])"
        f" == 0; main({words.split()})"
    )
    paths = os.pathsep.join([str(tmp_path / "src"), str(tmp_path / "tests")])
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env | {"PYTHONPATH": paths},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\.{8,}", done.stdout, flags=re.MULTILINE) and "20/20" in done.stdout
