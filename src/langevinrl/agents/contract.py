"""The contract of an agent, and the fields shared by all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import tyro

from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update


class Agent(Protocol):
    """Hyperparameters of a method, with pure functions over a pytree state.

    No method mutates, prints, logs or touches the host. No method has a seed axis: the training
    loop adds it.
    """

    columns: ClassVar[dict[str, str]]  # extra replay columns -> the field each starts as

    @property
    def spec(self) -> Spec: ...

    def init(self, key: Key) -> PyTree:
        """Return fresh weights, target copies and optimiser state."""
        ...

    def noise(self, key: Key, num: int) -> PyTree:
        """Draw every random number that `num` actions need.

        Each leaf has leading axis `num` and holds plain draws, standard normal or uniform on the
        action box; exports take them as inputs.
        """
        ...

    def policy(self, state: PyTree, obs: Array, noise: PyTree, *, explore: bool) -> Array:
        """Return actions (B, A) for observations (B, O); `explore=False` is evaluation.

        A deterministic function: all randomness is in `noise`.
        """
        ...

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update:
        """Do one update on one batch: new state, scalar metrics, rewritten replay columns."""
        ...

    def trace(self, state: PyTree, obs: Array, noise: PyTree) -> Array:
        """Return every point of the first chain of each observation: (T + 1, B, A).

        The last point is the action before exploration noise and a choice among candidates.
        """
        ...

    def policy_weight(self, state: PyTree) -> Array | float | None:
        """Return w if the policy is exp(w · Q) with Q in units of raw reward, else None."""
        ...


@runtime_checkable
class Refining(Protocol):
    """An agent that can act without noise after the start of its chain."""

    def refine(self, state: PyTree, obs: Array, noise: PyTree) -> Array:
        """Return actions (B, A) for observations (B, O), using only the start in `noise`."""
        ...


@dataclass(frozen=True)
class Common:
    """Fields that the paper's table gives all methods, and defaults of optional methods."""

    columns: ClassVar[dict[str, str]] = {}
    # Values of agent and run fields by preset name; the preset `paper` is the defaults.
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    # Defaults of run fields, such as the batch size, where this method differs from the paper.
    run_defaults: ClassVar[dict[str, Any]] = {}

    spec: tyro.conf.Suppress[Spec]  # sizes of the task, set from the environment
    gamma: float = 0.99  # γ: discount factor
    target_rate: float = 0.005  # τ: step of the target copy towards the weights
    reward_scale: float = 0.2  # κ: factor on the reward inside the update
    hidden: tuple[int, ...] = (256, 256, 256)  # widths of the hidden layers

    def act(self: Agent, state: PyTree, obs: Array, key: Key, *, explore: bool) -> Array:
        """Return actions (B, A) with fresh noise."""
        return self.policy(state, obs, self.noise(key, len(obs)), explore=explore)

    def trace_scores(self, state: PyTree, obs: Array, path: Array) -> Array | None:
        """Return the critics' action gradient at every point a trace moved from: (T, B, A).

        The gradient is logged before scaling and normalisation. None: the chain follows no critic.
        """
        del state, obs, path
        return None

    def policy_weight(self, state: PyTree) -> Array | float | None:
        """Return None: most policies are not defined as exp(w · Q)."""
        del state
        return None
