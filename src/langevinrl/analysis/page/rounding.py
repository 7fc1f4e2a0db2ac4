"""Numbers as the page needs them: no more figures than a screen can show."""

from __future__ import annotations

import math
from collections.abc import Iterable


def rounded(values: Iterable[float], figures: int) -> list[float | int | None]:
    """Numbers with so many figures; null for what is not finite, which JSON cannot say."""
    return [_round(float(value), figures) for value in values]


def _round(value: float, figures: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{figures}g}")
    return int(short) if short.is_integer() else short
