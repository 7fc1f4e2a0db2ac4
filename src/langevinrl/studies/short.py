"""All methods on six tasks in minutes per run: one draw per action, 200,000 environment steps."""

from langevinrl.registry import METHODS
from langevinrl.studies.study import Study

STUDY = Study(
    title="All methods in short runs",
    about="Not in the paper: 3 seeds, 40,000 iterations of 5 environments, the preset short, and "
    "N = 1 for all methods. 4% of the paper's length on its longer tasks, 20% on the others.",
    agents=tuple(METHODS),
    tasks=("HalfCheetah", "Ant", "Hopper", "Walker2d", "InvertedDoublePendulum", "Reacher"),
    seeds=(100, 101, 102),
    preset="short",
    iterations=40_000,
    evaluations=10,
    episodes=5,
    shared={"best_of": 1},
)
