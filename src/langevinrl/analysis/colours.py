"""Colours of curves: one per method, or one per setting of a method."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb

from langevinrl.registry import METHODS, colour_of

# For settings of a method; distinguishable by the colour-blind.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933",
    "#332288", "#44AA99", "#661100", "#6699CC", "#AA4499", "#117733",
)  # fmt: skip


def choose_colours(labels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Choose a colour per label: the method's own if it has one label, else the next free one."""
    agents = [agent for _, agent in labels]
    found = {}
    for label, agent in labels:
        if agents.count(agent) == 1 and agent in METHODS:
            found[label] = colour_of(agent)
    free = [colour for colour in COLOURS if colour not in found.values()]
    for label, _ in labels:
        if label not in found:
            found[label] = free.pop(0) if free else _extra_colour(len(found))
    return found


def _extra_colour(number: int) -> str:
    """Return a colour beyond the list: hues a golden section apart never repeat."""
    hue, lightness = number * 0.618034 % 1, 0.35 + 0.2 * (number % 2)
    return "#" + "".join(f"{round(255 * c):02X}" for c in hls_to_rgb(hue, lightness, 0.75))
