"""Stop training when evaluations no longer improve, and keep the best model."""

import sys
from pathlib import Path

import langevinrl as lrl


class EarlyStopping(lrl.Callback):
    """Stops after `patience` evaluations without improvement."""

    def __init__(self, patience: int = 5) -> None:
        self.patience = patience
        self.best, self.worse = float("-inf"), 0

    def on_evaluation(self, run, evaluation):
        self.worse = 0 if evaluation.mean > self.best else self.worse + 1
        self.best = max(self.best, evaluation.mean)
        return self.worse >= self.patience  # True ends the run after saving it


out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/callback")
keep = lrl.callbacks.Evaluate(every=250, episodes=10, best=out / "best")
model = lrl.Model("nclql-auto", "Pendulum-v1", eval_every=250, out=str(out))
model.learn(iterations=3_000, callback=[EarlyStopping(), keep])

best = lrl.Model.load(out / "best")
print(f"best model: {best.evaluate(episodes=10).mean:.1f}, in {out / 'best'}")
