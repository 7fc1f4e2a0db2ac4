"""NC-LQL over w, its inverse temperature."""

from langevinrl.studies.study import SEEDS, Study

STUDY = Study(
    title="NC-LQL over w",
    about="Ablation with 3 seeds. The paper shows its grid and tasks only in an image: these are "
    "ours, from nearly pure noise to ten times its w.",
    agents=("nclql",),
    tasks=("HalfCheetah", "Walker2d"),
    seeds=SEEDS[:3],
    cases=tuple({"inverse_temperature": w} for w in (1.0, 10.0, 50.0, 100.0, 500.0, 5_000.0)),
)
