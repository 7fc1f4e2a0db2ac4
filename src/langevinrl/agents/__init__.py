"""The register: every agent by name."""

from __future__ import annotations

from langevinrl.agents.contract import Agent, Common
from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL

REGISTER: dict[str, type[Common]] = {
    "lql": LQL,
    "nclql": NCLQL,
}

__all__ = ["REGISTER", "Agent", "Common"]
