"""How fast an update and an action are, beside a straightforward version of both, in one run."""

from __future__ import annotations

from langevinrl.bench.agents import Bench, measure

__all__ = ["Bench", "measure"]
