"""Timing of updates, actions and single decisions, as ratios within one run."""

from __future__ import annotations

from langevinrl.bench.agents import Bench, measure

__all__ = ["Bench", "measure"]
