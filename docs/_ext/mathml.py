"""Formulas as MathML, which browsers draw themselves: no script, no picture, no network.

The usual way, MathJax, is a script of a megabyte that Sphinx loads from a content network; MathML
is a few words of markup in the page, sharp at every size, and read aloud by screen readers.
"""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def visit_math(translator: Any, node: Any) -> None:
    """A formula within a line."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise SkipNode


def visit_math_block(translator: Any, node: Any) -> None:
    """A formula on lines of its own; it scrolls sideways where it is wider than the page."""
    formula = convert(node.astext().strip(), display="block")
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
