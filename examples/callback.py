"""Something of your own at every evaluation: keep the best weights, stop when nothing improves."""

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import langevinrl as lrl
from langevinrl.storage.checkpoint import name_leaves


class KeepBest(lrl.Callback):
    """Writes the state of the best evaluation; asks for a stop after `patience` worse ones."""

    def __init__(self, path: Path, patience: int = 5) -> None:
        self.path, self.patience = path, patience
        self.best, self.worse = -np.inf, 0

    def on_evaluation(self, run, evaluation):
        if evaluation.mean > self.best:
            self.best, self.worse = evaluation.mean, 0
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_file(name_leaves(run.state), self.path)  # named arrays, copied to the host
        else:
            self.worse += 1
        return self.worse >= self.patience  # True ends the run, saved


out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/callback")
keep = KeepBest(out / "best.safetensors")
model = lrl.Model("nclql", "Pendulum-v1", preset="fast", eval_every=250, out=str(out))
model.learn(iterations=3_000, callback=keep)
print(f"best: {keep.best:.1f}, in {keep.path}")
