"""The bandit study as data: what each method is trained with, and what the paper printed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langevinrl.config import unknown
from langevinrl.envs.bandit import BOUND
from langevinrl.errors import UserError

# One state and no future: the critic's target is the reward itself.
COMMON: dict[str, Any] = {"gamma": 0.0, "reward_scale": 1.0, "hidden": (64, 64, 64)}
CHAIN_STEPS = 10  # of every sampler, as in the paper's panels
WARMUP = 20_000  # uniform actions before the first update
SWEEP = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0)  # w in [1, 500]

# Chains tried on the exact values; the settings below come from here.
SEARCH: dict[str, tuple[float, ...]] = {
    "sigma_max": (0.8, 0.7, 0.6, 0.5),
    "sigma_min": (0.2, 0.3, 0.4),
    "inverse_temperature": (300.0, 100.0, 200.0, 400.0, 500.0),
    "step_size": (5e-4, 2e-4, 1e-3),
}


@dataclass(frozen=True)
class Method:
    """One method of the study."""

    label: str
    hyperparameters: dict[str, Any]  # beside COMMON; the rest are the agent's defaults
    updates: int
    batch_size: int = 256
    explore: bool = False  # how a draw from the policy is asked for, without noise on top
    # within 0.3 of the top, right, bottom, left mode; None where the paper has no row
    paper: tuple[float, float, float, float] | None = None


_DENOISING = {"num_steps": CHAIN_STEPS, "start_std": 1.0}

METHODS: dict[str, Method] = {
    "nclql": Method(
        "NC-LQL",
        {
            "inverse_temperature": 300.0,
            "sigma_max": 0.8,
            "sigma_min": 0.2,
            "num_levels": CHAIN_STEPS,
            "steps_per_level": 1,
            "step_size": 5e-4,
            "start": "normal",
            "learning_rate": 1e-3,
        },
        updates=8_000,
        paper=(0.240, 0.256, 0.243, 0.254),
    ),
    "lql": Method(
        "LQL",
        {
            "inverse_temperature": 300.0,
            "num_steps": CHAIN_STEPS,
            "step_size": 5e-4,
            "start": "normal",
            "learning_rate": 1e-3,
        },
        updates=6_000,
        paper=(0.141, 0.147, 0.139, 0.143),
    ),
    "sdac": Method(
        "SDAC",
        {**_DENOISING, "best_of": 1, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        paper=(0.227, 0.227, 0.239, 0.234),
    ),
    "qsm": Method(
        "QSM",
        {
            "sampler": "ddpm",
            "num_steps": CHAIN_STEPS,
            "best_of": 1,
            "critic_learning_rate": 1e-3,
            "actor_learning_rate": 1e-3,
        },
        updates=6_000,
        explore=True,  # evaluation has one constant key; there is no noise on top
        paper=(0.118, 0.115, 0.117, 0.115),
    ),
    "dacer": Method(
        "DACER",
        {**_DENOISING, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        paper=(0.0, 1.0, 0.0, 0.0),
    ),
    "dipo": Method(
        "DIPO",
        {**_DENOISING, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        paper=(0.100, 0.099, 0.104, 0.098),
    ),
    "dpmd": Method(
        "DPMD",
        {**_DENOISING, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        batch_size=64,
    ),
    "qvpo": Method(
        "QVPO",
        {**_DENOISING, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        batch_size=64,
    ),
    "mfp": Method(
        "MFP",
        {"flow_steps": CHAIN_STEPS, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        batch_size=64,
    ),
    "sac": Method(
        "SAC",
        {"critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3},
        updates=6_000,
        explore=True,  # evaluation would take the mode
    ),
}


@dataclass(frozen=True)
class BanditConfig:
    """The 2D bandit study: trains, samples and measures every method, and draws the figures."""

    out: Path = Path("runs/bandit")  # folder for the table, the data, the figures and the page
    methods: tuple[str, ...] = ()  # which methods to study; all of them unless told
    seed: int = 0  # first seed
    seeds: int = 5  # seeds per method
    samples: int = 10_000  # actions drawn from each trained policy
    bound: float = BOUND  # half-width of the action box
    sweep: tuple[float, ...] = SWEEP  # w at which LQL and NC-LQL are sampled
    workers: int = 2  # methods trained at a time, each in a process of its own; 1: all in this one
    quick: bool = False  # one seed, a tenth of the training, fewer samples: a look, not a result

    def settled(self) -> BanditConfig:
        """The same study with every default spelled out, checked."""
        for name in self.methods:
            if name not in METHODS:
                raise UserError(unknown("bandit method", name, METHODS))
        methods = self.methods or tuple(METHODS)
        if not self.quick:
            return dataclasses.replace(self, methods=methods)
        few = tuple(w for w in self.sweep if w in (1.0, 10.0, 100.0, 300.0)) or self.sweep[:1]
        return dataclasses.replace(
            self, methods=methods, seeds=1, samples=min(self.samples, 2_000), sweep=few
        )

    @property
    def run_seeds(self) -> list[int]:
        return list(range(self.seed, self.seed + self.seeds))
