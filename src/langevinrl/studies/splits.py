"""NC-LQL over splits of its Langevin steps into L levels of T steps."""

from langevinrl.studies.study import SEEDS, Study

# (T, L): for each product the splits with T <= L and one beyond; (5, 1) is the paper's, without
# smoothing.
SPLITS = (
    (1, 5), (5, 1),
    (1, 10), (2, 5),
    (1, 20), (2, 10), (4, 5),
    (1, 50), (5, 10), (10, 5),
    (2, 50), (5, 20), (10, 10), (20, 5),
)  # fmt: skip

STUDY = Study(
    title="NC-LQL over splits of T x L = 5, 10, 20, 50, 100",
    about="Ablation with 3 seeds. The paper names the products and shows the splits only in an "
    "image: these are ours, and so are the tasks.",
    agents=("nclql",),
    tasks=("HalfCheetah", "Walker2d"),
    seeds=SEEDS[:3],
    cases=tuple({"steps_per_level": t, "num_levels": levels} for t, levels in SPLITS),
)
