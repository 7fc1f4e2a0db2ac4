"""Train NC-LQL on Pendulum for three seeds, then draw its curve with an interval."""

import sys
from pathlib import Path

import langevinrl as lrl
from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/train-and-plot")
model = lrl.Model("nclql", "Pendulum-v1", preset="fast", seeds=3, eval_every=250, out=str(out))
model.learn(iterations=3_000)  # three seeds side by side, in one process

# A run folder is all a figure needs: the same three lines draw yours of last year.
runs = group_runs(find_runs([out]))
print(write_figure(learning_curves(runs, x="env_steps"), out / "curve.png"))
