"""Formulas as MathML, which browsers render without scripts, images or a network."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# Corrections of what browsers infer wrongly from the converter's output.
MINUS = r"(<mo[^>]*>(?:&#x00028;|&#x0002C;|&#x0003D;)</mo>(?:<mspace[^>]*/>)*)<mo>&#x02212;</mo>"
REPAIRS = (
    (MINUS, r'\1<mo form="prefix">&#x02212;</mo>'),  # a sign, not a difference
    (r"(<mi>log</mi>)(?=<m[is])", r'\1<mspace width="0.167em"/>'),
    # The bars of a norm are as tall as its text.
    (r"<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>'),
    (r"<mo>&#x0223C;</mo>", '<mo lspace="0.28em" rspace="0.28em">&#x0223C;</mo>'),  # "drawn from"
)


def to_mathml(formula: str, display: str) -> str:
    found = convert(formula, display=display)
    for wrong, right in REPAIRS:
        found = re.sub(wrong, right, found)
    return found


def visit_math(translator: Any, node: Any) -> None:
    """Write a formula within a line."""
    translator.body.append(to_mathml(node.astext(), "inline"))
    raise SkipNode


def visit_math_block(translator: Any, node: Any) -> None:
    """Write a formula on its own line, which scrolls if it is too wide."""
    formula = to_mathml(node.astext().strip(), "block")
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
