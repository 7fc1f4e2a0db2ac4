"""Runs grouped into curves: the runs of a group differ only in their seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from typing import Any

from langevinrl.analysis.evaluations import Series
from langevinrl.analysis.records import RunRecord, printable, task_of
from langevinrl.registry import METHODS, colour_of, label_of
from langevinrl.runs.config import FIELDS_BESIDE_LEARNING

# Fields that do not affect learning, or are shown in another way.
UNCOUNTED = FIELDS_BESIDE_LEARNING | {
    "agent", "env", "hyperparameters", "seed", "seeds", "seed_step",
}  # fmt: skip
# For settings of a method; distinguishable by the colour-blind.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933",
    "#332288", "#44AA99", "#661100", "#6699CC", "#AA4499", "#117733",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds: one curve."""

    agent: str
    env: str
    label: str  # the method's name, then the settings that distinguish it
    colour: str  # the same for the same label on every task
    settings: dict[str, Any]  # only fields that vary among this agent's runs on some task
    series: list[Series]
    runs: list[RunRecord]

    @property
    def task(self) -> str:
        """The environment without its version."""
        return task_of(self.env)


def group_runs(records: Sequence[RunRecord]) -> list[Group]:
    """Group records that have evaluations, in the registry's order, then by settings.

    Settings are compared among the runs of one agent on one task.  A method with one setting per
    task, but different ones on different tasks, is still one method.
    """
    records = [record for record in records if record.series]
    varied = {agent: varied_fields(records, agent) for agent in {r.agent for r in records}}
    runs: dict[tuple[str, str], list[RunRecord]] = {}
    settings: dict[str, tuple[str, dict[str, Any]]] = {}
    for record in records:
        fields = counted_fields(record)
        mine = {name: fields[name] for name in varied[record.agent] if name in fields}
        words = [f"{name} {describe(value)}" for name, value in mine.items()]
        label = printable(", ".join([label_of(record.agent), *words]))
        settings[label] = (record.agent, mine)
        runs.setdefault((label, record.env), []).append(record)
    order = list(METHODS)  # other agents come last, by name

    def place(label: str) -> tuple[Any, ...]:
        agent, mine = settings[label]
        known = order.index(agent) if agent in order else len(order)
        return known, agent, [rank(value) for value in mine.values()]

    labels = sorted(settings, key=place)
    colours = choose_colours([(label, settings[label][0]) for label in labels])
    return [
        Group(
            settings[label][0], env, label, colours[label], settings[label][1],
            [one for record in runs[label, env] for one in record.series], runs[label, env],
        )
        for label in labels
        for env in sorted(env for name, env in runs if name == label)
    ]  # fmt: skip


def counted_fields(record: RunRecord) -> dict[str, Any]:
    """Return the fields that affect what a run learns, hyperparameters included."""
    config = record.config
    if not config:
        return {"config": "none"}  # unknown settings: a curve of its own
    fields = {**config, **config.get("hyperparameters", {})}
    used = fields.get("warmup", 0) + (fields.get("iterations") or 0) * fields.get("num_envs", 1)
    if fields.get("capacity", 0) >= used:
        fields["capacity"] = "all"  # every transition fits, however much room is left
    return {name: value for name, value in fields.items() if name not in UNCOUNTED}


def varied_fields(records: Sequence[RunRecord], agent: str) -> list[str]:
    """Return the fields with several values among an agent's runs on some task."""
    found: dict[str, None] = {}
    for env in dict.fromkeys(record.env for record in records if record.agent == agent):
        runs = [counted_fields(r) for r in records if (r.agent, r.env) == (agent, env)]
        if len({"config" in run for run in runs}) > 1:
            found["config"] = None
        found |= dict.fromkeys(differing(runs))
    return list(found)


def differing(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the fields with several values; one that only some runs have is no difference."""
    names = dict.fromkeys(name for run in runs for name in run)
    return [n for n in names if len({json.dumps(run[n]) for run in runs if n in run}) > 1]


def by_task(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """Return the groups of each task, versions of a task together."""
    tasks: dict[str, list[Group]] = {}
    for group in groups:
        tasks.setdefault(group.task, []).append(group)
    return tasks


def describe(value: Any) -> str:
    """Format the value of a setting: 100, 64x64, on."""
    if isinstance(value, list):
        return "x".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def rank(value: Any) -> tuple[int, float, str]:
    """Return a sort key for values of a setting: numbers by size, before the rest as text."""
    number = isinstance(value, int | float)
    return (0, float(value), "") if number else (1, 0.0, json.dumps(value))


def choose_colours(labels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Choose a colour per label: the method's own if it has one label, else the next free one."""
    agents = [agent for _, agent in labels]
    found = {}
    for label, agent in labels:
        if agents.count(agent) == 1 and agent in METHODS:
            found[label] = colour_of(agent)
    free = [colour for colour in COLOURS if colour not in found.values()]
    for label, _ in labels:
        if label not in found:
            found[label] = free.pop(0) if free else _extra_colour(len(found))
    return found


def _extra_colour(number: int) -> str:
    """Return a colour beyond the list: hues a golden section apart never repeat."""
    hue, lightness = number * 0.618034 % 1, 0.35 + 0.2 * (number % 2)
    return "#" + "".join(f"{round(255 * c):02X}" for c in hls_to_rgb(hue, lightness, 0.75))
