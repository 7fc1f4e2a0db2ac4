"""docs/logging.md explains every name that is logged, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jax
import pytest
from test_contract import batch_for, make

from langevinrl.registry import METHODS
from langevinrl.runs import evaluate, track

PAGE = Path(__file__).parent.parent / "docs" / "logging.md"
GROUPS = ("rollout", "eval", "time", "train", "sampler")


def explained() -> set[str]:
    """The names that begin a row of the page's tables."""
    rows = re.findall(r"^\| `(\S+)` \| (.+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    names = [name for name, said in rows if name.split("/")[0] in GROUPS and len(said) > 10]
    assert len(names) == len(set(names))
    return set(names)


def updates_names() -> set[str]:
    """What the updates of all methods hand back, by shapes alone."""
    found: set[str] = set()
    for name in METHODS:
        agents = [make(name)]
        if name == "nclql":
            agents.append(type(agents[0])(agents[0].spec, optimisation="joint"))
            agents.append(type(agents[0])(agents[0].spec, spread=0.1))
        for agent in agents:
            state = jax.eval_shape(agent.init, jax.random.key(0))
            batch = batch_for(agent)
            update = jax.eval_shape(agent.update, state, batch, jax.random.key(1))
            found |= {track.tag_of(metric) for metric in update.metrics}
    return found


def test_every_logged_name_is_explained_and_no_other(tiny_run: Path) -> None:
    lines = (tiny_run / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    logged = updates_names() | set(track.mean_values(rows))
    logged |= set(track.evaluation_values(evaluate.Evaluation(0, [evaluate.Episode(0, 0, 1.0, 1)])))
    logged |= set(track.CLOCK)
    logged = {re.sub(r"level_\d+$", "level_NN", name) for name in logged}
    assert logged == explained()


@pytest.mark.parametrize("place", track.PLACE)
def test_where_a_line_belongs_is_explained_too(place: str) -> None:
    assert f"`{place}`" in PAGE.read_text()
