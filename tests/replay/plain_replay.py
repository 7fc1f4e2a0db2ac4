"""A simple replay buffer that stores every next observation with its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.types import Batch, Spec, Transition


class PlainReplay:
    """A ring per seed: the reference for `Replay`."""

    def __init__(
        self,
        spec: Spec,
        capacity: int,
        seeds: Sequence[int],
        columns: dict[str, str] | None = None,
        num_envs: int = 1,
    ) -> None:
        self.capacity, self.columns, self.num_envs = capacity, columns or {}, num_envs
        self.size = self.position = 0
        self.generators = [np.random.default_rng([seed, 0x5EED]) for seed in seeds]
        sizes: dict[str, tuple[int, ...]] = {
            "obs": (spec.obs_dim,),
            "action": (spec.act_dim,),
            "reward": (),
            "bootstrap": (),
            "next_obs": (spec.obs_dim,),
        }
        sizes |= {name: sizes[source] for name, source in self.columns.items()}
        self.rings = {
            name: np.zeros((len(seeds), capacity, *size), np.float32)
            for name, size in sizes.items()
        }

    def add(self, transition: Transition) -> None:
        num_new = transition.reward.shape[1]
        rows = (self.position + np.arange(num_new)) % self.capacity
        stored = transition._asdict()
        for name, ring in self.rings.items():
            ring[:, rows] = stored[self.columns.get(name, name)]
        self.position = (self.position + num_new) % self.capacity
        self.size = min(self.size + num_new, self.capacity)

    def sample(self, batch_size: int, n_step: int = 1, gamma: float = 1.0) -> Batch:
        row = np.stack([g.integers(self.size, size=batch_size) for g in self.generators])
        drawn: dict[str, Any] = {
            name: np.stack([own[r] for own, r in zip(ring, row, strict=True)])
            for name, ring in self.rings.items()
        }
        for (seed, b), one in np.ndenumerate(row):
            returns = self.follow(seed, int(one), n_step, gamma)
            for name, value in zip(("reward", "bootstrap", "next_obs"), returns, strict=True):
                drawn[name][seed, b] = value
        extra = {name: drawn.pop(name) for name in self.columns}
        return Batch(**drawn, row=row.astype(np.int32), extra=extra)

    def follow(self, seed: int, row: int, n_step: int, gamma: float) -> tuple[Any, Any, Any]:
        """Return the n-step reward, bootstrap and next observation of a row, step by step."""
        rings = {name: ring[seed] for name, ring in self.rings.items()}
        total, age = 0.0, (self.position - 1 - row) % self.capacity
        for step in range(n_step):
            total += gamma**step * float(rings["reward"][row])
            following = (row + self.num_envs) % self.capacity
            cut = rings["next_obs"][row].tobytes() != rings["obs"][following].tobytes()
            newest = age < (step + 1) * self.num_envs
            if step == n_step - 1 or newest or cut or rings["bootstrap"][row] == 0:
                break
            row = following
        return total, gamma**step * rings["bootstrap"][row], rings["next_obs"][row]

    def rewrite(self, row: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        seed = np.arange(len(row))[:, None]
        for name, values in columns.items():
            self.rings[name][seed, row] = values

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: ring[:, : self.size] for name, ring in self.rings.items()}
