"""The presets `fast`: settings for runs of minutes on a CPU, tens of thousands of updates long.

The paper's are made for a million updates on a GPU.  docs/fast.md tells what each value gives, and
on which task and seed they were chosen.
"""

from __future__ import annotations

from typing import Any

# What all three share.  A target copy that moves by 0.005 takes 200 updates to follow, so that
# news of a reward crosses the hundred steps of γ's horizon in 20,000; moved by 0.02 and over three
# steps at a time it takes a tenth of that.
SHORT_RUN: dict[str, Any] = {
    "target_rate": 0.02,
    "n_step": 3,
    "hidden": (256, 256),
    "batch_size": 128,
    "warmup": 5_000,  # a longer one is most of replay for most of a short run
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

# The same reach in a quarter of the steps.
LQL_FAST = SHORT_RUN | {"num_steps": 5, "step_size": 4e-4, "learning_rate": 1e-3}

# At the paper's α = e and rewards x 0.2 entropy outweighs reward for tens of thousands of updates.
SAC_FAST = SHORT_RUN | {
    "initial_alpha": 1.0,
    "reward_scale": 1.0,
    "critic_learning_rate": 1e-3,
    "actor_learning_rate": 1e-3,
    "temperature_learning_rate": 1e-3,
}
