"""The register: every agent by name."""

from __future__ import annotations

from langevinrl.agents.contract import Agent, Common
from langevinrl.agents.dacer import DACER
from langevinrl.agents.dipo import DIPO
from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.lql import LQL
from langevinrl.agents.mfp import MFP
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.qsm import QSM
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sac import SAC
from langevinrl.agents.sdac import SDAC

REGISTER: dict[str, type[Common]] = {
    "nclql": NCLQL,
    "lql": LQL,
    "sac": SAC,
    "qsm": QSM,
    "dipo": DIPO,
    "qvpo": QVPO,
    "dacer": DACER,
    "mfp": MFP,
    "sdac": SDAC,
    "dpmd": DPMD,
}

__all__ = ["REGISTER", "Agent", "Common"]
