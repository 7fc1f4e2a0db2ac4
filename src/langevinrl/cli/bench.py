"""langevinrl bench [AGENT...] [--latency | --learning]"""

from __future__ import annotations

from langevinrl.bench import Bench, measure
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError

DEFAULT_CONTESTANTS = (
    "nclql-fast", "nclql-fast-balance", "sac-fast", "sbx-sac", "sbx-crossq", "sbx-crossq-equal",
)  # fmt: skip


def main(words: list[str]) -> None:
    asked = parse(Bench, words, "bench")
    if asked.latency and asked.learning:
        raise UserError("--latency and --learning are two measurements: ask for one")
    if asked.latency:
        _latency(asked)
    elif asked.learning:
        _learning(asked)
    else:
        measure(asked)


def _latency(asked: Bench) -> None:
    if asked.agents not in ((), ("nclql",)):
        raise UserError("--latency times nclql: leave the agents out")
    from langevinrl.bench.latency import measure_latency

    measure_latency(asked.out, asked.calls)


def _learning(asked: Bench) -> None:
    from langevinrl.bench.learning import Contest, measure_learning

    names = asked.agents or DEFAULT_CONTESTANTS
    seeds = range(asked.seed, asked.seed + asked.seeds)
    measure_learning(Contest(names, asked.tasks, seeds, asked.minutes, asked.rivals, asked.out))
