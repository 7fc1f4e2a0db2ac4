"""Settings of the bandit study for each method, and the shares in the paper."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from langevinrl.errors import UserError, unknown
from langevinrl.studies.bandit.env import BOUND
from langevinrl.sweeps.slots import usable_cores

# A discount of zero: the critic's target is the reward itself.
COMMON: dict[str, Any] = {"gamma": 0.0, "reward_scale": 1.0, "hidden": (64, 64, 64)}
CHAIN_STEPS = 10  # of every sampler, as in the paper's panels
WARMUP = 20_000  # uniform actions before the first update
# w in [1, 500]; LQL and NC-LQL are compared with others at the w of the highest mean reward
SWEEP = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0)


@dataclass(frozen=True)
class Training:
    """Training of one method in the study."""

    hyperparameters: dict[str, Any]  # added to COMMON; others are the agent's defaults
    updates: int
    batch_size: int = 256
    # fields that change for the last third of the updates, so that the policy settles
    finish: dict[str, Any] = field(default_factory=dict)
    explore: bool = False  # value of `explore` that samples the policy without added noise
    # within 0.3 of the top, right, bottom, left mode; None where the paper has no row
    paper: tuple[float, float, float, float] | None = None


# The published rates are for a million updates; here there are a few thousand.
_FAST = {"critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3}
# At scale 0.3 the forward process turns the eight modes into N(0, I), where chains start.
_CHAIN = {"num_steps": CHAIN_STEPS, "start_std": 1.0, "schedule_scale": 0.3, **_FAST}
_DENOISING = {**_CHAIN, "delay": 1}

TRAININGS: dict[str, Training] = {
    "nclql": Training(
        {
            "sigma_max": 0.7,
            "sigma_min": 0.3,
            "num_levels": CHAIN_STEPS,
            "steps_per_level": 1,
            "step_size": 5e-4,
            "start": "normal",
            "learning_rate": 2e-3,
        },
        updates=7_500,
        finish={"learning_rate": 2e-4},
        paper=(0.240, 0.256, 0.243, 0.254),
    ),
    "lql": Training(
        {
            "num_steps": CHAIN_STEPS,
            "step_size": 5e-4,
            "start": "normal",
            "learning_rate": 2e-3,
        },
        updates=6_000,
        finish={"learning_rate": 2e-4},
        paper=(0.141, 0.147, 0.139, 0.143),
    ),
    "sdac": Training(
        {
            **_DENOISING,
            "best_of": 1,
            # Weights are exp(Q α₀/α) and α falls to 0.98, so that w ends at α₀/0.98.
            "initial_alpha": 20.0,
            "temperature_delay": 1,
        },
        updates=5_000,
        batch_size=64,
        paper=(0.227, 0.227, 0.239, 0.234),
    ),
    "qsm": Training(
        {
            "sampler": "ddpm",
            # With ten steps its reverse chain, which has no clean estimate to clip, ends at the
            # edge of the box at any factor.
            "num_steps": 50,
            "gradient_scale": 2.0,
            "activation": "mish",
            "best_of": 1,
            **_FAST,
        },
        updates=4_000,
        batch_size=64,
        explore=True,  # evaluation has one constant key; exploration adds no noise
        paper=(0.118, 0.115, 0.117, 0.115),
    ),
    "dacer": Training(
        {**_CHAIN, "delay": 2},
        updates=2_000,
        batch_size=64,
        paper=(0.0, 1.0, 0.0, 0.0),
    ),
    "dipo": Training(
        {
            **_CHAIN,
            # Small steps: large ones move actions past the low modes before the critic has learned.
            "num_ascent_steps": 20,
            "ascent_rate": 0.0035,
        },
        updates=4_000,
        batch_size=64,
        paper=(0.100, 0.099, 0.104, 0.098),
    ),
    "dpmd": Training(
        {**_DENOISING, "temperature_delay": 1},  # it learns from its own noisy actions: α must fall
        updates=2_500,
        batch_size=32,
    ),
    "qvpo": Training(
        # Cut-off weights are zero where Q is at most 1, which is everywhere here.
        {**_DENOISING, "weights": "advantage", "policy_best_of": 32, "best_of": 1},
        updates=2_000,
        batch_size=32,
    ),
    "mfp": Training({"flow_steps": CHAIN_STEPS, **_FAST}, updates=2_000, batch_size=32),
    "sac": Training(
        {**_FAST, "initial_alpha": 0.02, "temperature_learning_rate": 1e-3},
        updates=5_000,
        batch_size=64,
        explore=True,  # evaluation returns the mode
    ),
}


@dataclass(frozen=True)
class BanditConfig:
    """Train, sample and measure methods on a 2D bandit, and draw the figures."""

    out: Path = Path("runs/bandit")  # folder for the table, the data, the figures and the page
    methods: tuple[str, ...] = ()  # methods to study; all by default
    seed: int = 0  # first seed
    seeds: int = 5  # seeds per method
    samples: int = 10_000  # actions drawn from each trained policy
    bound: float = BOUND  # half-width of the action box
    sweep: tuple[float, ...] = SWEEP  # values of w at which LQL and NC-LQL are sampled
    # methods trained at a time, each in its own process; one per available CPU by default, and
    # with 1 all in this process
    workers: int | None = None
    # one seed, a tenth of the training, fewer samples: a preview, not a result
    quick: tyro.conf.FlagCreatePairsOff[bool] = False

    def resolved(self) -> BanditConfig:
        """Validate, and return the study with every default filled in."""
        for name in self.methods:
            if name not in TRAININGS:
                raise UserError(unknown("bandit method", name, TRAININGS))
        methods = self.methods or tuple(TRAININGS)
        workers = self.workers or min(len(methods), len(usable_cores()))
        study = dataclasses.replace(self, methods=methods, workers=workers)
        if not self.quick:
            return study
        few = tuple(w for w in self.sweep if w in (10.0, 500.0)) or self.sweep[:1]
        return dataclasses.replace(study, seeds=1, samples=min(self.samples, 2_000), sweep=few)

    @property
    def run_seeds(self) -> list[int]:
        """All seeds, the first one included."""
        return list(range(self.seed, self.seed + self.seeds))
