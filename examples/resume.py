"""One run in one go, and the same run cut in the middle: their results are equal to the bit."""

import sys
from dataclasses import replace
from pathlib import Path

import langevinrl as lrl
from langevinrl.storage.folder import RunFolder

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/resume")
whole = lrl.RunConfig("Pendulum-v1", warmup=1_000, eval_every=500, iterations=2_000)
lrl.train(replace(whole, out=str(out / "whole")))

# Ctrl-C, a crash or a cluster's time limit would end it as well as this does.
cut = replace(whole, out=str(out / "cut"), iterations=1_000)
lrl.train(cut)
lrl.resume(out / "cut", iterations=2_000)


def last_returns(name: str) -> list[str]:
    """Returns of the last evaluation's episodes."""
    rows = RunFolder(out / name).read_evaluations()
    return [row["return"] for row in rows if row["iterations"] == rows[-1]["iterations"]]


print(last_returns("whole"))
print(last_returns("cut"))
assert last_returns("whole") == last_returns("cut")
