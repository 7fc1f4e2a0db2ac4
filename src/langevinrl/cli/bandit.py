"""langevinrl bandit --out DIR [--quick]"""

from __future__ import annotations

from langevinrl.cli.forms import parse
from langevinrl.studies.bandit.settings import BanditConfig


def main(words: list[str]) -> None:
    config = parse(BanditConfig, words, "bandit")
    from langevinrl.studies.bandit.study import run_study

    run_study(config)
