"""Registered methods: class, label, colour, summary and citation.

Their order is that of every table and figure. A class is imported on request only, so lists and
reports need no JAX.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Method:
    """A registered method; `load` imports its agent class."""

    path: str  # module:Class
    label: str  # name in papers
    colour: str  # in every figure
    summary: str  # one line
    paper: str  # the publication to cite
    in_paper: bool = True  # one of the ten methods that the Langevin paper compares

    def load(self) -> type[Any]:
        """Import the agent class: METHODS["nclql"].load()(spec)."""
        module, name = self.path.split(":")
        return getattr(importlib.import_module(module), name)


METHODS: dict[str, Method] = {
    "nclql": Method(
        "langevinrl.agents.nclql:NCLQL", "NC-LQL", "#0072B2",
        "Noise-conditioned LQL: annealed Langevin dynamics on critics smoothed at several levels.",
        "Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873",
    ),
    "nclql-auto": Method(
        "langevinrl.agents.nclql_auto:NCLQLAuto", "NC-LQL auto", "#332288",
        "NC-LQL with one set of defaults for every task and an automatic temperature.",
        "langevinrl; NC-LQL is from arXiv 2602.07873", in_paper=False,
    ),
    "lql": Method(
        "langevinrl.agents.lql:LQL", "LQL", "#D55E00",
        "Langevin Q-learning: actions follow the critic's gradient; there is no actor.",
        "Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873",
    ),
    "sac": Method(
        "langevinrl.agents.sac:SAC", "SAC", "#009E73",
        "Soft actor-critic: a tanh-squashed Gaussian policy with an entropy bonus.",
        "Soft Actor-Critic Algorithms and Applications (2018), arXiv 1812.05905",
    ),
    "qsm": Method(
        "langevinrl.agents.qsm:QSM", "QSM", "#CC79A7",
        "Q-score matching: a score network learns the critics' action gradient.",
        "Learning a Diffusion Model Policy from Rewards via Q-Score Matching (2024), "
        "arXiv 2312.11752",
    ),
    "dipo": Method(
        "langevinrl.agents.dipo:DIPO", "DIPO", "#E69F00",
        "Replayed actions follow the critics' gradient; a diffusion policy is fitted to them.",
        "Policy Representation via Diffusion Probability Model for Reinforcement Learning (2023), "
        "arXiv 2305.13122",
    ),
    "qvpo": Method(
        "langevinrl.agents.qvpo:QVPO", "QVPO", "#56B4E9",
        "Q-weighted policy optimisation: denoising of its own best actions and of uniform ones.",
        "Diffusion-based Reinforcement Learning via Q-weighted Variational Policy Optimization "
        "(2024), arXiv 2405.16173",
    ),
    "dacer": Method(
        "langevinrl.agents.dacer:DACER", "DACER", "#000000",
        "The policy gradient passes through the whole chain; estimated entropy sets added noise.",
        "Diffusion Actor-Critic with Entropy Regulator (2024), arXiv 2405.15177",
    ),
    "mfp": Method(
        "langevinrl.agents.mfp:MFP", "MFP", "#999933",
        "Mean-flow policy: maps noise to action in a few steps and imitates its best candidates.",
        "Mean Flow Policy with Instantaneous Velocity Constraint for One-step Action Generation "
        "(2026)",
    ),
    "sdac": Method(
        "langevinrl.agents.sdac:SDAC", "SDAC", "#882255",
        "Soft diffusion actor-critic: learns to denoise towards exp(Q/α) without samples from it.",
        "Efficient Online Reinforcement Learning for Diffusion Policy (2025), arXiv 2502.00361",
    ),
    "dpmd": Method(
        "langevinrl.agents.dpmd:DPMD", "DPMD", "#44AA99",
        "Diffusion policy mirror descent: a policy fitted to its own samples weighted by exp(Q/α).",
        "Efficient Online Reinforcement Learning for Diffusion Policy (2025), arXiv 2502.00361",
    ),
}  # fmt: skip


def label_of(name: str) -> str:
    """Return a method's label; an unregistered method keeps its name."""
    return METHODS[name].label if name in METHODS else name


def colour_of(name: str) -> str:
    """Return a method's colour; grey if it is not registered."""
    return METHODS[name].colour if name in METHODS else "#7F7F7F"
