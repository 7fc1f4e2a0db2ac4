"""The documentation: its Python runs, its commands and links exist, its agent works."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_contract

import langevinrl as lrl
from langevinrl import METHODS, Model
from langevinrl.cli import VERBS
from langevinrl.registry import Method

ROOT = Path(__file__).parent.parent
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("[!_]*.md"))]
PAGES += [*sorted((DOCS / "methods").glob("*.md")), *sorted(ROOT.glob("results/*/README.md"))]
NEW_AGENT = DOCS / "adding-an-agent.md"
# These need an agent's file, exported files or a renderer; other tests run them.
ELSEWHERE = {NEW_AGENT, DOCS / "deploy.md", DOCS / "logging.md"}
PUBLIC = (
    "langevinrl",
    *(f"langevinrl.{n}" for n in "samplers callbacks analysis export".split()),
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


TINY = "warmup=300, batch_size=8, capacity=2_000, eval_every=1_000, eval_episodes=1"
TINY_MODEL, TINY_RUN = f"{TINY}, hidden=(8,)", f"{TINY}, hyperparameters={{'hidden': (8,)}}"


def shorten(source: str) -> str:
    """Return the same program with one seed, tiny networks and a thousandth of the iterations.

    Pendulum replaces another task, so that pages share what is compiled.
    """
    sizes = "warmup|batch_size|capacity|eval_every|eval_episodes|hidden"
    source = re.sub(rf",\s*(?:{sizes})=(?:[\d_]+|\([^)]*\))", "", source)
    source = re.sub(
        r'(Model\("[\w-]+", (?:"[^"]+"|\w+(?:\.\w+)?(?:\([^()]*\))?))', rf"\1, {TINY_MODEL}", source
    )
    source = re.sub(r'(RunConfig\("[^"]+")', rf"\1, {TINY_RUN}", source)
    source = re.sub(
        r"(iterations|total_timesteps)=([\d_]+)",
        lambda m: f"{m[1]}={max(2, int(m[2]) // 1000)}",
        source,
    )
    changes = {"> -200": "> -1e9", "every=250": "every=1", "seeds=3": "seeds=1"}
    for old, new in (changes | {"InvertedDoublePendulum-v4": "Pendulum-v1"}).items():
        source = source.replace(old, new)
    return source


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


WITH_PYTHON = [page for page in PAGES if page not in ELSEWHERE and blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_python_of_a_page_runs(page: Path, work: Path) -> None:
    source = "\n".join(blocks(page, "python"))
    exec(compile(shorten(source), page.name, "exec"), {"__name__": "docs"})


RESULT_OF = {
    "train_and_plot.py": "curve.png",
    "own_environment.py": "config.json",
    "resume.py": "cut/resumes.jsonl",
    "evaluate_and_record.py": "episode.csv",
    "callback.py": "best/config.json",
}


@pytest.mark.parametrize("name", RESULT_OF)
def test_example_runs(name: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, "out"])
    source = shorten((EXAMPLES / name).read_text())
    exec(compile(source, name, "exec"), {"__name__": "__main__"})
    assert (work / "out" / RESULT_OF[name]).exists()


def test_every_example_is_listed_short_and_imports_public_names_only() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    others = {"compare.py", "play_policy.py", "sample_mixture.py", "quickstart.ipynb"}
    assert names == {*RESULT_OF, *others}
    listed = re.findall(r"^\| `(\w+\.\w+)` ", (DOCS / "start.md").read_text(), re.MULTILINE)
    assert set(listed) == names
    pages = [block for page in WITH_PYTHON for block in blocks(page, "python")]
    for source in [path.read_text() for path in EXAMPLES.iterdir()] + pages:
        imported = re.findall(r"(?:from|import) (langevinrl[\w.]*)", source)
        assert set(imported) <= set(PUBLIC), imported
        assert len(source.splitlines()) <= 60 or source.startswith("{"), "more than a screen"


def test_notebook_runs_and_stores_no_output(work: Path) -> None:
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells and not any(cell["outputs"] for cell in cells)
    source = "\n".join("".join(cell["source"]) for cell in cells)
    exec(compile(shorten(source), "quickstart", "exec"), {"__name__": "__main__"})
    assert (work / "quickstart-model" / "config.json").exists()


def test_comparison_example_compares_and_prints_a_table(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train_here(grid: lrl.Grid, out: Path) -> None:  # sweeps have tests of their own
        for i, config in enumerate(grid.configs()):
            lrl.train(replace(config, out=str(out / f"run-{i}")), quiet=True)

    monkeypatch.setattr(lrl, "sweep", train_here, raising=False)
    monkeypatch.setattr(sys, "argv", ["compare.py", "out"])
    source = (EXAMPLES / "compare.py").read_text().replace("[50.0, 500.0]", "[500.0]")
    tiny = f'"iterations": 4, **dict({TINY_MODEL})'
    source = source.replace('"iterations": 3_000, "warmup": 1_000', tiny).replace(
        "[0, 1, 2]", "[0, 1]"
    )
    exec(compile(source, "compare.py", "exec"), {"__name__": "__main__"})
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert sum("LQL" in row for row in rows) == 2 and " to " in rows[-1]


def test_mixture_example_finds_both_modes_in_their_shares() -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile((EXAMPLES / "sample_mixture.py").read_text(), "mixture", "exec"), names)
    points, right = np.asarray(names["points"]), np.asarray(names["right"])
    assert abs(right.mean() - 0.7) < 0.05
    for some, centre in [(~right, [-2.0, 0.0]), (right, [2.0, 1.0])]:
        np.testing.assert_allclose(points[some].mean(0), centre, atol=0.08)
        np.testing.assert_allclose(points[some].std(0), 0.4, atol=0.05)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_links_of_a_page_exist(page: Path) -> None:
    commands = "\n".join(blocks(page, "sh"))
    assert set(re.findall(r"^langevinrl (\w+)", commands, flags=re.MULTILINE)) <= set(VERBS)
    for agent in re.findall(r"^langevinrl train ([\w-]+) ", commands, flags=re.MULTILINE):
        assert agent in METHODS
    for target in re.findall(r"^make ([\w-]+)", commands, flags=re.MULTILINE):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert Path(os.path.normpath(page.parent / link)).exists(), link


def test_tests_named_on_the_reliability_page_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "reliability.md").read_text()))
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named - set(re.findall(r"def (test_\w+)", tests)) == set()


@pytest.fixture
def new_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The agent of the page, with its row in the registry."""
    (source,), (row,) = blocks(NEW_AGENT, "python"), blocks(NEW_AGENT, "text")
    (entry,) = eval(f"{{{row}}}", {"Method": Method}).items()
    monkeypatch.setitem(METHODS, *entry)
    module_name, _, class_name = entry[1].path.partition(":")
    (tmp_path / "shooting.py").write_text(source)
    spec = importlib.util.spec_from_file_location(module_name, tmp_path / "shooting.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module_name, module)
    spec.loader.exec_module(module)
    return getattr(module, class_name)


def test_agent_of_the_page_meets_the_contract_and_trains(new_agent: Any, tmp_path: Path) -> None:
    tests = [test for name, test in vars(test_contract).items() if name.startswith("test_")]
    given = {"agent": test_contract.make("shooting"), "tmp_path": tmp_path, "explore": True}
    asked = [(test, list(inspect.signature(test).parameters)) for test in tests]
    fitting = [(test, names) for test, names in asked if "agent" in names]
    assert len(fitting) >= 8
    for test, names in fitting:
        test(**{name: given[name] for name in names})
    tiny = {"hidden": (8,), "warmup": 300, "batch_size": 8, "capacity": 2_000, "eval_episodes": 1}
    model = Model("shooting", "toys:golden", out=str(tmp_path / "run"), **tiny)
    model.learn(iterations=4, progress_bar=False)
    assert model.iteration == 4
