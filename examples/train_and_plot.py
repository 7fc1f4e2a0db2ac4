"""Train three seeds of NC-LQL auto on Pendulum and plot their learning curve."""

import sys
from pathlib import Path

import langevinrl as lrl
from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/train-and-plot")
model = lrl.Model("nclql-auto", "Pendulum-v1", seeds=3, eval_every=250, out=str(out))
model.learn(iterations=3_000)  # all seeds in one process

# A figure needs only the run folder, so it can be drawn at any time.
runs = group_runs(find_runs([out]))
print(write_figure(learning_curves(runs, x="env_steps"), out / "curve.png"))
