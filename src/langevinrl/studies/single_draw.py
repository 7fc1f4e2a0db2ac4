"""Ten methods on nine tasks with one draw per action, without best-of-N."""

from langevinrl.studies.study import Study

STUDY = Study(
    title="Ten methods, one draw per action",
    about="The figure that repeats training with N = 1 for all methods, so that none gains from "
    "choosing among 32 candidates.",
    shared={"best_of": 1},
)
