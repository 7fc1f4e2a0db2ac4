"""Replay: a ring of transitions in host memory, one ring per seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.errors import UserError, field
from langevinrl.runs.memory import free_memory
from langevinrl.types import Batch, Spec, Transition


class Replay:
    """The last `capacity` transitions of every seed; drawn uniformly with replacement.

    All seeds fill in step.  Memory is claimed from the system only as rows are first written.
    """

    def __init__(
        self, spec: Spec, capacity: int, seeds: Sequence[int], columns: dict[str, str] | None = None
    ) -> None:
        num_seeds = len(seeds)
        self.capacity, self.columns = capacity, columns or {}
        self.size = self.position = 0
        self.generators = [np.random.default_rng([seed, 0x5EED]) for seed in seeds]
        shapes: dict[str, tuple[int, ...]] = {
            "obs": (spec.obs_dim,),
            "action": (spec.act_dim,),
            "reward": (),
            "bootstrap": (),
            "next_obs": (spec.obs_dim,),
        }
        shapes |= {name: shapes[source] for name, source in self.columns.items()}
        num_bytes = 4 * num_seeds * capacity * sum(int(np.prod(shape)) for shape in shapes.values())
        _check_fits(num_bytes, capacity)
        self.num_bytes = num_bytes
        self.rings = {
            name: np.zeros((num_seeds, capacity, *shape), np.float32)
            for name, shape in shapes.items()
        }

    def add(self, transition: Transition) -> None:
        """Store one step of E environments; the oldest rows make room."""
        num_new = transition.reward.shape[1]
        rows = (self.position + np.arange(num_new)) % self.capacity
        stored = transition._asdict()
        for name, ring in self.rings.items():
            ring[:, rows] = stored[self.columns.get(name, name)]
        self.position = (self.position + num_new) % self.capacity
        self.size = min(self.size + num_new, self.capacity)

    def sample(self, batch_size: int) -> Batch:
        """A batch per seed, (S, B, ...); each seed draws from a generator of its own."""
        row = np.stack([g.integers(self.size, size=batch_size) for g in self.generators])
        drawn: dict[str, Any] = {
            name: np.stack([own[r] for own, r in zip(ring, row, strict=True)])
            for name, ring in self.rings.items()
        }
        extra = {name: drawn.pop(name) for name in self.columns}
        return Batch(**drawn, row=row.astype(np.int32), extra=extra)  # type: ignore[arg-type]

    def rewrite(self, row: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Overwrite extra columns at the rows a batch came from."""
        seed = np.arange(len(row))[:, None]
        for name, values in columns.items():
            self.rings[name][seed, row] = values

    def arrays(self) -> dict[str, np.ndarray]:
        """The filled rows of every ring, for a checkpoint."""
        return {name: ring[:, : self.size] for name, ring in self.rings.items()}

    def metadata(self) -> dict[str, Any]:
        """What JSON can hold of it: how full it is, and where its generators stand."""
        generators = [generator.bit_generator.state for generator in self.generators]
        return {"size": self.size, "position": self.position, "generators": generators}

    def restore(self, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
        self.size, self.position = metadata["size"], metadata["position"]
        for name, ring in self.rings.items():
            rows = ring[:, : self.size]
            if name not in arrays or arrays[name].shape != rows.shape:
                raise UserError(f"checkpoint's replay does not fit this run: {name} differs")
            rows[...] = arrays[name]
        for generator, state in zip(self.generators, metadata["generators"], strict=True):
            generator.bit_generator.state = state


def _check_fits(num_bytes: int, capacity: int) -> None:
    available = free_memory()
    if num_bytes > available:
        fitting = int(capacity * 0.8 * available / num_bytes)
        raise UserError(
            f"replay would need {num_bytes / 1e9:.1f} GB and {available / 1e9:.1f} GB are free; "
            f"try {field('capacity', fitting)} or fewer {field('seeds')}"
        )
