"""Write the results into the pages that show them: `make results`.

python experiments/make_results.py            # blocks of all pages, and figures
python experiments/make_results.py --text     # blocks only

A page names a block between two comments, and the text between them is replaced.  A new block is
a function with `@block` in one of the MODULES below, and its comments in a page.

Figures are drawn from files under results/ by the function of their experiment.  Not drawn again:

- results/bandit/figures: `langevinrl bandit` draws them.
- results/past_the_paper, except reward_size: its script was removed in the commit its README names.
- docs/report.png: a screenshot.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import lql_start
import mujoco_tasks
import result_auto
import result_costs
import result_sentences
import result_short
import result_tables
import reward_size
import sac_check
import temperature
from result_files import BLOCKS, RESULTS, ROOT

# They register the blocks.
MODULES = (result_tables, result_auto, result_short, result_sentences, result_costs)
MARKED = re.compile(r"^<!-- results: ([\w-]+) -->\n.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)

FIGURES: tuple[Callable[[], None], ...] = (
    mujoco_tasks.draw,
    lql_start.draw,
    sac_check.draw,
    temperature.draw,
    lambda: reward_size.draw(RESULTS / "past_the_paper" / "reward_size"),
    result_auto.draw,
    result_short.draw,
)


def pages() -> list[Path]:
    """Return every page that may hold blocks."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/methods/*.md")]
    return sorted([*found, *ROOT.glob("results/*/README.md")])


def updated(text: str) -> str:
    """Return a page with all its blocks written again."""
    return MARKED.sub(lambda found: marked(found[1]), text)


def marked(name: str) -> str:
    """Return a block with its comments; blank lines keep its Markdown apart from them."""
    return f"<!-- results: {name} -->\n\n{BLOCKS[name]().strip()}\n\n<!-- end -->"


def write_pages() -> None:
    for page in pages():
        old = page.read_text()
        new = updated(old)
        if new != old:
            page.write_text(new)
            print(page.relative_to(ROOT))


def draw_figures() -> None:
    os.chdir(ROOT)  # experiments name files from the root of the repository
    for draw in FIGURES:
        draw()


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--text"]):
        sys.exit(__doc__)
    if not sys.argv[1:]:
        draw_figures()  # first: some also write tables that blocks read
    write_pages()
