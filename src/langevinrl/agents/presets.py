"""The presets for runs of minutes on a CPU, tens of thousands of updates long.

The paper's settings are made for a million updates on a GPU.  docs/fast.md tells what each value
gives, and on which seeds they were chosen.
"""

from __future__ import annotations

from typing import Any

# What all three methods share.  A target copy that moves by 0.005 takes 200 updates to follow, so
# that news of a reward crosses the hundred steps of γ's horizon in 20,000; at 0.05 in 2,000.
SHORT_RUN: dict[str, Any] = {
    "target_rate": 0.05,
    "hidden": (256, 256),
    "batch_size": 64,  # twice as many rows take longer and teach little more
    "warmup": 5_000,  # a longer one is most of replay for most of a short run
    "reward_norm": True,
    "reward_scale": 2.0,  # of rewards whose root mean square is one (with n_step, their sums')
}

# A quarter of the chain, by one critic's slope, with w set by itself.
NCLQL_FAST = SHORT_RUN | {
    "num_levels": 5,
    "steps_per_level": 1,
    "spread": 0.2,
    "score_critics": "first",
    "optimisation": "joint",
    "evaluation": "climb",
    "learning_rate": 1e-3,
}

# For tasks that end when a body falls, Hopper and Walker2d: what a step leads to is soon known, and
# returns of three steps carry it further.  On HalfCheetah they settle for the first gait found.
NCLQL_BALANCE = NCLQL_FAST | {"n_step": 3, "spread": 0.1}

# The same reach in a quarter of the steps.
LQL_FAST = SHORT_RUN | {"num_steps": 5, "step_size": 4e-4, "learning_rate": 1e-3}

# At the paper's α = e and rewards x 0.2 entropy outweighs reward for tens of thousands of updates.
SAC_FAST = SHORT_RUN | {
    "initial_alpha": 1.0,
    "critic_learning_rate": 1e-3,
    "actor_learning_rate": 1e-3,
    "temperature_learning_rate": 1e-3,
}
