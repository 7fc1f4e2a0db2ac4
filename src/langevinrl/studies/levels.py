"""NC-LQL over its noise: (σ_L, ε) at three values of σ₁."""

from langevinrl.studies.study import SEEDS, Study

STUDY = Study(
    title="NC-LQL over (σ_L, ε) at σ₁ = 0.1, 1, 10",
    about="Ablation with 3 seeds. The paper names σ₁ and shows its grid of (σ_L, ε) only in an "
    "image: a factor of ten around the defaults is ours, and so are the tasks.",
    agents=("nclql",),
    tasks=("HalfCheetah", "Walker2d"),
    seeds=SEEDS[:3],
    cases=tuple(
        {"sigma_max": first, "sigma_min": last, "step_size": step}
        for first in (0.1, 1.0, 10.0)
        for last in (1e-4, 1e-3, 1e-2)
        for step in (1e-5, 1e-4, 1e-3)
    ),
)
