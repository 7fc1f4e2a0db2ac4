"""docs/logging.md explains every logged name, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest
from test_contract import batch_for, make

from langevinrl.registry import METHODS
from langevinrl.runs import track
from langevinrl.runs.evaluate import Episode, Evaluation
from langevinrl.runs.track import Track

PAGE = Path(__file__).parent.parent / "docs" / "logging.md"
GROUPS = ("rollout", "eval", "time", "train", "sampler")


def explained() -> set[str]:
    """Return the names in the first column of the page's tables."""
    rows = re.findall(r"^\| `(\S+)` \| (.+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    names = [name for name, said in rows if name.split("/")[0] in GROUPS and len(said) > 10]
    assert len(names) == len(set(names))
    return set(names)


def updates_names() -> set[str]:
    """Return the metrics that the updates of all methods return."""
    found: set[str] = set()
    for name in METHODS:
        agents = [make(name)]
        if name == "nclql":
            agents.append(type(agents[0])(agents[0].spec, optimisation="joint"))
        for agent in agents:
            state = jax.eval_shape(agent.init, jax.random.key(0))
            batch = batch_for(agent)
            update = jax.eval_shape(agent.update, state, batch, jax.random.key(1))
            found |= set(track.mean_values([dict.fromkeys(update.metrics, 0.0)]))
    return found


def test_every_logged_name_is_explained_and_no_other(tiny_run: Path) -> None:
    lines = (tiny_run / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    logged = updates_names()
    callback: Any = Track(None, SimpleNamespace(rows=rows), [])  # type: ignore[arg-type]
    callback.first, callback._log = (0, 0.0), lambda run, values: logged.update(values)
    run = SimpleNamespace(
        vector_steps=1, iteration=1, wall_seconds=1.0, config=SimpleNamespace(num_envs=1)
    )
    callback.on_step(run, None)
    callback.on_evaluation(run, Evaluation(0, [Episode(0, 0, 1.0, 1)]))
    logged = {re.sub(r"level_\d+$", "level_NN", name) for name in logged}
    assert logged == explained()


@pytest.mark.parametrize("place", track.PLACE)
def test_columns_that_are_not_metrics_are_explained(place: str) -> None:
    assert f"`{place}`" in PAGE.read_text()
