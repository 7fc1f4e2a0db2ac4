"""langevinrl bench [AGENT...] [--latency]"""

from __future__ import annotations

from langevinrl.bench import Bench, measure
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError


def main(words: list[str]) -> None:
    config = parse(Bench, words, "bench")
    if not config.latency:
        measure(config)
        return
    if config.agents not in ((), ("nclql",)):
        raise UserError("--latency times nclql: leave the agents out")
    from langevinrl.bench.latency import measure_latency

    measure_latency(config.out, config.calls)
