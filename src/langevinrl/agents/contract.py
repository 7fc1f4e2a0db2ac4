"""The contract every agent implements, and the fields all ten methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import tyro

from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update


class Agent(Protocol):
    """An agent *is* its hyperparameters; all that changes is in a pytree state, arrays only.

    No method mutates, prints, logs, counts time or touches the host, and none names a seed axis:
    the loop adds it.
    """

    columns: ClassVar[dict[str, str]]  # extra replay columns -> the field each starts as

    @property
    def spec(self) -> Spec: ...

    def init(self, key: Key) -> PyTree:
        """Fresh weights, target copies and optimiser state."""
        ...

    def act(self, state: PyTree, obs: Array, key: Key, *, explore: bool) -> Array:
        """Actions (B, A) for observations (B, O); `explore=False` is evaluation."""
        ...

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        """One update on one batch: new state, scalar metrics, rewritten replay columns."""
        ...

    def trace(self, state: PyTree, obs: Array, key: Key, start: Array | None = None) -> Array:
        """Every point of the chain an action comes from, one per observation: (steps + 1, B, A).

        The first is the start, `start` (B, A) if given; the last is the action before any noise
        for exploring and any choice among candidates.
        """
        ...

    def policy_weight(self, state: PyTree) -> Array | float | None:
        """w, if the policy means to be exp(w x value of unscaled rewards); None otherwise."""
        ...


@runtime_checkable
class Refining(Protocol):
    """What an agent also has if its actions can be had without noise after the chain's start."""

    def refine(self, state: PyTree, obs: Array, key: Key) -> Array:
        """Actions (B, A) for observations (B, O); the key decides the start, nothing else."""
        ...


@dataclass(frozen=True)
class Common:
    """What the paper's table gives all ten methods alike."""

    columns: ClassVar[dict[str, str]] = {}
    # Values of its fields, and of its run's (`runs.presets`), by the name of a preset; `paper`
    # needs none, it is the defaults.
    presets: ClassVar[dict[str, dict[str, Any]]] = {}

    spec: tyro.conf.Suppress[Spec]  # the task's sizes, filled in from the environment: no flag
    gamma: float = 0.99  # γ: discount of the value a step later
    target_rate: float = 0.005  # τ: how far the target copy moves to the weights at a time
    reward_scale: float = 0.2  # κ: factor on the reward inside the update
    hidden: tuple[int, ...] = (256, 256, 256)  # widths of the hidden layers

    def trace_scores(self, state: PyTree, obs: Array, path: Array) -> Array | None:
        """For the logs: the critics' slope at each point a trace left, (steps, B, A).

        As the critics have it, before inverse temperature and normalising.  None: most methods do
        not walk along it.
        """
        del state, obs, path
        return None

    def policy_weight(self, state: PyTree) -> Array | float | None:
        """None: most methods have no such law."""
        del state
        return None
