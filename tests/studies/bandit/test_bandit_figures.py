"""Figures drawn from the files of a study folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from study_folder import write_study

from langevinrl.studies.bandit.figures import draw_figures


def test_all_figures_are_drawn_from_files(tmp_path: Path) -> None:
    out = write_study(tmp_path / "study")
    written = draw_figures(out)
    assert {path.stem for path in written} == {
        "values", "scores", "temperature", "reward_over_w", "comparison", "steps",
    }  # fmt: skip
    assert all(0 < path.stat().st_size < 1_000_000 for path in written)


def test_figures_and_page_do_not_import_jax() -> None:
    code = (
        "import sys, langevinrl.studies.bandit.figures, langevinrl.studies.bandit.page; "
        "print('jax' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
