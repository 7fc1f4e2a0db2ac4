"""Numbers printed in the paper, Direct Soft-Policy Sampling via Langevin Dynamics (2026).

arXiv 2602.07873.  The paper does not define its normalisation.  It calls its ± standard errors over
five seeds, but their size fits a standard deviation over tasks.
"""

from __future__ import annotations

from langevinrl.runs.config import PAPER_ITERATIONS

TASKS = tuple(PAPER_ITERATIONS)
PROGRESS = (0.2, 0.4, 0.6, 0.8, 1.0)

# Normalised return x 100 over the nine tasks, at those fractions of training.
NORMALISED: dict[str, tuple[float, float, float, float, float]] = {
    "nclql": (71.2, 84.5, 91.4, 92.2, 95.5),
    "lql": (52.6, 56.2, 57.7, 63.7, 63.4),
    "sac": (46.1, 63.9, 66.4, 70.7, 71.3),
    "qsm": (45.6, 53.3, 55.0, 53.9, 55.3),
    "dipo": (62.2, 74.8, 75.7, 79.6, 79.8),
    "qvpo": (42.9, 40.8, 38.6, 45.0, 44.7),
    "dacer": (61.0, 71.9, 69.4, 75.5, 76.0),
    "mfp": (44.1, 54.5, 61.0, 61.4, 64.8),
    "sdac": (65.1, 69.6, 73.3, 78.0, 76.7),
    "dpmd": (72.0, 75.4, 80.2, 84.7, 83.3),
}
# The ± of the last column.
PLUS_MINUS: dict[str, float] = {
    "nclql": 2.0, "lql": 10.0, "sac": 8.7, "qsm": 9.6, "dipo": 6.9, "qvpo": 6.6, "dacer": 9.5,
    "mfp": 8.5, "sdac": 6.5, "dpmd": 6.3,
}  # fmt: skip

# Training time on Humanoid-v4 relative to NC-LQL's 1.65 hours on one RTX 4090;
# the paper lists no others.
HUMANOID_TIME: dict[str, float] = {
    "nclql": 1.000, "lql": 0.909, "dpmd": 1.343, "dipo": 1.505, "sdac": 1.687, "dacer": 1.899,
    "qvpo": 5.515,
}  # fmt: skip

# Trainable parameters on Humanoid-v4 relative to NC-LQL's; the paper lists no others.
HUMANOID_PARAMETERS: dict[str, float] = {
    "nclql": 1.000, "lql": 0.978, "sac": 1.477, "dipo": 1.495, "qvpo": 1.487, "sdac": 1.487,
    "dpmd": 1.487, "dacer": 1.489,
}  # fmt: skip
