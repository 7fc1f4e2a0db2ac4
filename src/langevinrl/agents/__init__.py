"""Agents: one file per method, listed in `registry.METHODS`."""

from __future__ import annotations

from langevinrl.agents.contract import Agent, Common, Refining

__all__ = ["Agent", "Common", "Refining"]
