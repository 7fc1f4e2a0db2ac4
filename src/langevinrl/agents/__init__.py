"""One file per method; `registry.METHODS` names them."""

from __future__ import annotations

from langevinrl.agents.contract import Agent, Common, Refining

__all__ = ["Agent", "Common", "Refining"]
