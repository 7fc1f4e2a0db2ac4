"""Analysis of run folders: statistics, tables, figures and a report page.  Needs no JAX.

from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure
write_figure(learning_curves(group_runs(find_runs(["runs"]))), "curves.png")
"""

from langevinrl.analysis.figures import draw_group, learning_curves, write_figure
from langevinrl.analysis.groups import Group, group_runs
from langevinrl.analysis.records import RunRecord, find_runs
from langevinrl.analysis.report import write_files, write_report
from langevinrl.analysis.summary import Summary, summarise

__all__ = [
    "Group",
    "RunRecord",
    "Summary",
    "draw_group",
    "find_runs",
    "group_runs",
    "learning_curves",
    "summarise",
    "write_figure",
    "write_files",
    "write_report",
]
