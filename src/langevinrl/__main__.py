"""The command line: one subcommand per verb."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import tyro

from langevinrl.errors import UserError

FIELDS = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff)  # booleans are words
SWITCHES = (tyro.conf.FlagCreatePairsOff,)  # --json and --quick stand alone


def train(words: list[str]) -> None:
    """Train an agent: langevinrl train AGENT --env ID [any field]."""
    from langevinrl.agents import REGISTER
    from langevinrl.config import RunConfig, unknown
    from langevinrl.train import run
    from langevinrl.types import Spec

    if not words or words[0].startswith("-"):
        print("usage: langevinrl train AGENT|config.json --env ID [--iterations N] [any field]\n")
        agents([])
        print("\nAll fields of one: langevinrl train AGENT --help")
        raise SystemExit(0 if words[:1] in (["-h"], ["--help"]) else 2)
    known = RunConfig.read(Path(words[0])) if words[0].endswith(".json") else None
    name = known.agent if known else words[0]
    if name not in REGISTER:
        raise UserError(unknown("agent", name, REGISTER))
    if known:
        known.make_agent(Spec(1, 1))  # refuses what the form below would pass over
    defaults = dataclasses.asdict(known) | {"out": None} if known else {}
    run_form = _form(RunConfig, ("agent", "hyperparameters"), defaults)
    agent_form = _form(REGISTER[name], ("spec",), known.hyperparameters if known else {})
    both = dataclasses.make_dataclass("Train", [("run", run_form), ("agent", agent_form)])
    asked = _parse(both, words[1:], f"langevinrl train {words[0]}")
    hyperparameters = dataclasses.asdict(asked.agent)
    config = RunConfig(agent=name, hyperparameters=hyperparameters, **dataclasses.asdict(asked.run))
    _show(run(config))


def _form(kind: type[Any], hidden: tuple[str, ...], defaults: dict[str, Any]) -> type[Any]:
    """A dataclass's fields as the command line shows them, each with its comment as its help."""
    from langevinrl.config import field_help

    hints, help_of = get_type_hints(kind), field_help(kind)
    shown: list[Any] = []
    for field in dataclasses.fields(kind):
        if field.name in hidden:
            continue
        name, note = field.name, tyro.conf.arg(help=help_of[field.name])
        default = defaults.get(name, field.default)
        default = tuple(default) if isinstance(default, list) else default
        shown.append((name, Annotated.__class_getitem__((hints[name], note)), default))  # type: ignore[attr-defined]
    return dataclasses.make_dataclass(kind.__name__, shown)


@dataclass(frozen=True)
class Resume:
    """Continue a stopped run from its last checkpoint."""

    folder: tyro.conf.Positional[Path]  # the run folder
    iterations: int | None = None  # go on to this many iterations instead


def resume(words: list[str]) -> None:
    """Continue a stopped run: langevinrl resume DIR [--iterations N]."""
    from langevinrl.train import resume

    asked = _parse(Resume, words, "langevinrl resume")
    _show(resume(asked.folder, asked.iterations))


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained agent."""

    folder: tyro.conf.Positional[Path]  # the run folder
    episodes: int = 20  # per trained seed
    seed: int = 0  # decides the starts of the episodes


def evaluate(words: list[str]) -> None:
    """Play episodes with a trained agent: langevinrl evaluate DIR [--episodes 20]."""
    import numpy as np

    from langevinrl.model import Model

    asked = _parse(Evaluate, words, "langevinrl evaluate")
    episodes = Model.load(asked.folder).evaluate(asked.episodes, asked.seed)
    for seed in sorted({episode.seed for episode in episodes}):
        returns = np.array([e.total for e in episodes if e.seed == seed])
        lengths = np.array([e.length for e in episodes if e.seed == seed])
        print(
            f"seed {seed}: return {returns.mean():.1f} ± {returns.std():.1f} "
            f"(least {returns.min():.1f}, most {returns.max():.1f}), length {lengths.mean():.0f}"
        )


@dataclass(frozen=True)
class Plot:
    """Draw learning curves of one or more run folders."""

    folders: tyro.conf.Positional[tuple[Path, ...]]  # run folders
    out: Path | None = None  # picture to write; DIR/curve.png for one folder, curves.png for more


def plot(words: list[str]) -> None:
    """Draw learning curves: langevinrl plot DIR... [--out FILE]."""
    from langevinrl.report import draw_curves

    asked = _parse(Plot, words, "langevinrl plot")
    if not asked.folders:
        raise UserError("plot needs at least one run folder")
    default = asked.folders[0] / "curve.png" if len(asked.folders) == 1 else Path("curves.png")
    print(draw_curves(asked.folders, asked.out or default))


def agents(words: list[str]) -> None:
    """List the agents, a line each."""
    from langevinrl.agents import REGISTER

    _parse(Nothing, words, "langevinrl agents")
    for name, kind in REGISTER.items():
        print(f"{name:8} {(kind.__doc__ or '').splitlines()[0]}")


@dataclass(frozen=True)
class Nothing:
    """List the agents, a line each."""


@dataclass(frozen=True)
class Params:
    """Count each agent's trainable parameters for a task's sizes."""

    obs_dim: int  # observation size
    act_dim: int  # action size
    json: bool = False  # print JSON


def params(words: list[str]) -> None:
    """Count trainable parameters: langevinrl params --obs-dim O --act-dim A [--json]."""
    import jax

    from langevinrl.agents import REGISTER
    from langevinrl.config import RunConfig
    from langevinrl.learner import count_parameters
    from langevinrl.types import Spec

    asked = _parse(Params, words, "langevinrl params", SWITCHES)
    if asked.obs_dim < 1 or asked.act_dim < 1:
        raise UserError("--obs-dim and --act-dim count axes: at least 1 each")
    spec = Spec(asked.obs_dim, asked.act_dim)
    agents = {name: RunConfig("", agent=name).make_agent(spec) for name in REGISTER}
    counts = {
        name: count_parameters(jax.eval_shape(agent.init, jax.random.key(0)))
        for name, agent in agents.items()
    }
    if asked.json:
        print(json.dumps(counts, indent=2))
    else:
        for name, count in counts.items():
            print(f"{name:8} {count:>10,}")


def bandit(words: list[str]) -> None:
    """The 2D bandit study, all figures and the table: langevinrl bandit --out DIR [--quick]."""
    from langevinrl.bandit.settings import BanditConfig
    from langevinrl.bandit.study import study

    study(_parse(BanditConfig, words, "langevinrl bandit", SWITCHES))


def bench(words: list[str]) -> None:
    """Time update and act beside a straightforward version: langevinrl bench [AGENT...]."""
    from langevinrl.bench import Bench, measure

    measure(_parse(Bench, words, "langevinrl bench"))


VERBS: dict[str, Callable[[list[str]], None]] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "plot": plot,
    "agents": agents,
    "params": params,
    "bandit": bandit,
    "bench": bench,
}


def _parse(form: Any, words: list[str], program: str, style: Any = FIELDS) -> Any:
    capital = [re.sub("(^|=)(true|false)$", lambda m: m[1] + m[2].title(), word) for word in words]
    return tyro.cli(form, args=capital, prog=program, config=style)


def _show(folder: Path) -> None:
    """A run's evaluations as a short table, its curve, and where it lies."""
    from langevinrl.report import draw_curves, print_table

    print_table(folder)
    try:
        draw_curves([folder], folder / "curve.png")
    except UserError as error:
        print(f"No curve.png: {error}")
    print(folder)


def main(argv: list[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: langevinrl VERB ...\n")
        for name, verb in VERBS.items():
            print(f"  {name:9} {(verb.__doc__ or '').splitlines()[0]}")
        raise SystemExit(0 if words else 2)
    if words[0] == "--version":
        from langevinrl import __version__

        print(__version__)
        return
    if "" not in sys.path:
        sys.path.append("")  # so that the script, as python -m does, finds environments here
    try:
        if words[0] not in VERBS:
            from langevinrl.config import unknown

            raise UserError(unknown("command", words[0], VERBS))
        VERBS[words[0]](words[1:])
    except UserError as error:
        print(f"langevinrl: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt as stopped:
        print(str(stopped) or "Interrupted.")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
