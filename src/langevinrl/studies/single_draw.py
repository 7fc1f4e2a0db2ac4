"""The same comparison with one draw per action for every method: no best-of-N anywhere."""

from langevinrl.studies.study import Study

STUDY = Study(
    name="single-draw",
    title="Ten methods, one draw per action",
    about="The figure that repeats training with N = 1 for all, so that no method is helped by "
    "choosing among 32 candidates.",
    shared={"best_of": 1},
)
