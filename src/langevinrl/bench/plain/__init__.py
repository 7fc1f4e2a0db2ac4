"""Every agent's update and exploring act in plain JAX, to be timed and compared with its own.

What a first version would do: concatenate inputs for an ordinary perceptron, `vmap` over
candidates, differentiate with `jax.grad`, take textbook activations, and compute every loss at
every step, whether or not its result is due.  Written for the agents' default switches; numbers
such as sizes, rates and delays are the agent's own.  State and keys are used as the agent uses
them, so the results agree with its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from langevinrl.bench.plain import acting, denoising, tempered, walking
from langevinrl.types import Array, Batch, Key, Update


class Plain(NamedTuple):
    """A plain version of one agent: pure functions of the agent, its state and the rest."""

    update: Callable[[Any, Any, Batch, Key], Update]
    act: Callable[[Any, Any, Array, Key], Array]


PLAIN: dict[str, Plain] = {
    "nclql": Plain(walking.nclql_update, walking.nclql_act),
    "lql": Plain(walking.lql_update, walking.lql_act),
    "sac": Plain(acting.sac_update, acting.sac_act),
    "qsm": Plain(acting.qsm_update, acting.qsm_act),
    "dipo": Plain(denoising.dipo_update, denoising.dipo_act),
    "qvpo": Plain(denoising.qvpo_update, denoising.qvpo_act),
    "dacer": Plain(tempered.dacer_update, tempered.dacer_act),
    "mfp": Plain(acting.mfp_update, acting.mfp_act),
    "sdac": Plain(tempered.sdac_update, tempered.sdac_act),
    "dpmd": Plain(tempered.dpmd_update, tempered.dpmd_act),
}
