"""Ten methods on nine Gym MuJoCo tasks: the paper's main table and learning curves."""

from langevinrl.studies.study import Study

STUDY = Study(
    title="Ten methods on nine tasks",
    about="Main table and curves: 5 seeds, 1M iterations of 5 environments (200k on the last three "
    "tasks), every method at the settings of its appendix table.",
)
