"""Interrupt and resume a run, and compare it with one that was not interrupted."""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import langevinrl as lrl

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/resume")
whole = lrl.RunConfig("Pendulum-v1", warmup=1_000, eval_every=500, iterations=2_000)
lrl.train(replace(whole, out=str(out / "whole")))

# Ctrl-C, a crash or the time limit of a cluster would do the same.
lrl.train(replace(whole, out=str(out / "cut"), iterations=1_000))
lrl.resume(out / "cut", iterations=2_000)


def last_returns(name: str) -> list[str]:
    """Return the returns of the last evaluation."""
    with (out / name / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["return"] for row in rows if row["iterations"] == rows[-1]["iterations"]]


print(last_returns("whole"))
print(last_returns("cut"))
assert last_returns("whole") == last_returns("cut")
