"""The contract every agent implements, and the fields all ten methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update


class Agent(Protocol):
    """An agent *is* its hyperparameters; all that changes is in a pytree state, arrays only.

    No method mutates, prints, logs, counts time or touches the host, and none names a seed axis:
    the loop adds it.
    """

    columns: ClassVar[dict[str, str]]  # extra replay columns -> the field each starts as

    @property
    def spec(self) -> Spec: ...

    def init(self, key: Key) -> PyTree: ...

    def act(self, state: PyTree, obs: Array, key: Key, *, explore: bool) -> Array: ...

    def update(self, state: PyTree, batch: Batch, key: Key) -> Update: ...


@dataclass(frozen=True)
class Common:
    """What the paper's table gives all ten methods alike."""

    columns: ClassVar[dict[str, str]] = {}

    spec: Spec  # the task's sizes, filled in from the environment
    gamma: float = 0.99  # γ: discount of the value a step later
    target_rate: float = 0.005  # τ: how far the target copy moves to the weights at a time
    reward_scale: float = 0.2  # κ: factor on the reward inside the update
    hidden: tuple[int, ...] = (256, 256, 256)  # widths of the hidden layers
