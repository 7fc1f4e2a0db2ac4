"""What the documentation shows is run as it stands there."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from test_probes import draw_actions

from langevinrl.agents import REGISTER
from langevinrl.config import RunConfig
from langevinrl.train import Run

ROOT = Path(__file__).parent.parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_eleventh_agent_of_the_docs_learns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (source,) = blocks(ROOT / "docs" / "adding-an-agent.md", "python")
    path = tmp_path / "shooting.py"
    path.write_text(source)
    module = types.ModuleType("shooting")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "shooting", module)
    exec(compile(source, str(path), "exec"), module.__dict__)
    shooting: Any = module.Shooting
    monkeypatch.setitem(REGISTER, "shooting", shooting)
    assert len(source.splitlines()) < 150

    import probes

    config = RunConfig(
        "probe", agent="shooting", iterations=300, warmup=200, batch_size=64, num_envs=4,
        capacity=2_000, hyperparameters={"hidden": (24, 24), "learning_rate": 1e-2},
    ).resolved()  # fmt: skip
    job = Run.of(config, probes.ActionReward)
    job.lanes.reset()
    while job.iteration < 300:
        job.advance()
    job.lanes.close()
    assert abs(float(draw_actions(job).mean()) - 0.5) < 0.15


def test_the_python_of_the_readme_compiles_and_names_what_exists() -> None:
    import langevinrl

    for source in blocks(ROOT / "README.md", "python"):
        compile(source, "README.md", "exec")
        for name in re.findall(r"from langevinrl import (\w+)", source):
            assert getattr(langevinrl, name)


def test_the_commands_of_the_readme_exist() -> None:
    from langevinrl.__main__ import VERBS

    text = "\n".join(blocks(ROOT / "README.md", "sh"))
    verbs = re.findall(r"^langevinrl (\w+)", text, flags=re.MULTILINE)
    assert verbs
    assert set(verbs) <= set(VERBS)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE):
        assert f"\n{target}:" in makefile
