"""Replay buffer in host memory: one ring of transitions per seed, each observation stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.errors import UserError, field
from langevinrl.replay.final_obs import FinalObs
from langevinrl.replay.memory import free_memory
from langevinrl.replay.n_step import sum_rewards
from langevinrl.types import Batch, Spec, Transition


class Replay:
    """The last `capacity` transitions of every seed, sampled uniformly with replacement.

    Every seed adds E = `num_envs` rows per step, so the next step of a row's environment is E rows
    later, and its observation is the row's next observation.  Where it is not, because an episode
    ended or the environments were restarted, the next observation is stored separately
    (`FinalObs`).  The buffer finds these rows by comparing the two.  The system provides memory
    only as rows are first written.
    """

    def __init__(
        self,
        spec: Spec,
        capacity: int,
        seeds: Sequence[int],
        columns: dict[str, str] | None = None,
        *,
        num_envs: int = 1,
        reward_norm: bool = False,
    ) -> None:
        """`columns`: extra columns and the field that each is a copy of at first.

        `reward_norm`: divide sampled rewards by `reward_size`.
        """
        if capacity < num_envs:
            raise UserError(f"{field('capacity', capacity)} is less than {num_envs} environments")
        self.capacity, self.num_envs, self.columns = capacity, num_envs, columns or {}
        self.size = self.position = 0
        self.generators = [np.random.default_rng([seed, 0x5EED]) for seed in seeds]
        shapes: dict[str, tuple[int, ...]] = {
            "obs": (spec.obs_dim,),
            "action": (spec.act_dim,),
            "reward": (),
            "bootstrap": (),
        }
        shapes |= {name: shapes[source] for name, source in self.columns.items()}
        numbers = 1 + sum(int(np.prod(shape)) for shape in shapes.values())  # 1: final_obs.place
        # Final observations are extra: one for each episode end in the buffer.
        self.num_bytes = 4 * len(seeds) * capacity * numbers
        _check_fits(self.num_bytes, capacity)
        self.rings = {
            name: np.zeros((len(seeds), capacity, *shape), np.float32)
            for name, shape in shapes.items()
        }
        self.final_obs = FinalObs(len(seeds), capacity, spec.obs_dim)
        self.reward_norm = reward_norm
        self.reward_size = np.full(len(seeds), np.nan)  # (S,)  NaN until it is measured
        # Next observations of the last step, (S, E, O), which no row holds yet.
        self.newest = np.zeros((len(seeds), num_envs, spec.obs_dim), np.float32)

    def add(self, transition: Transition) -> None:
        """Store one step of E environments in place of the oldest rows."""
        if transition.reward.shape[1] != self.num_envs:  # one would be broadcast to all rows
            raise ValueError(f"{transition.reward.shape[1]} environments, not {self.num_envs}")
        if self.size:
            self._store_final(self._newest_rows(), self.newest, transition.obs)
        rows = (self.position + np.arange(self.num_envs)) % self.capacity
        self.final_obs.drop(rows)
        stored = transition._asdict()
        for name, ring in self.rings.items():
            ring[:, rows] = stored[self.columns.get(name, name)]
        self.newest[...] = transition.next_obs
        self.position = (self.position + self.num_envs) % self.capacity
        self.size = min(self.size + self.num_envs, self.capacity)

    def sample(self, batch_size: int, *, n_step: int = 1, gamma: float = 1.0) -> Batch:
        """Sample a batch per seed, (S, B, ...), each with the seed's own generator.

        With `n_step` above 1, rewards are summed over that many rows, discounted by `gamma`.  The
        sampled rows, which `rewrite` writes to, are the same.
        """
        row = np.stack([g.integers(self.size, size=batch_size) for g in self.generators])
        drawn: dict[str, Any] = {name: _pick(ring, row) for name, ring in self.rings.items()}
        extra = {name: drawn.pop(name) for name in self.columns}
        last = row
        if n_step > 1:
            drawn["reward"], drawn["bootstrap"], last = sum_rewards(self, row, n_step, gamma)
        if self.reward_norm:
            self._measure_rewards()
            size = np.nan_to_num(self.reward_size, nan=1.0).astype(np.float32)
            drawn["reward"] = drawn["reward"] / size[:, None]
        drawn["next_obs"] = self.next_obs(last)
        return Batch(**drawn, row=row.astype(np.int32), extra=extra)  # type: ignore[arg-type]

    def next_obs(self, row: np.ndarray) -> np.ndarray:
        """Return the next observations (S, B, O) of rows (S, B)."""
        found = _pick(self.rings["obs"], row + self.num_envs)
        age = (self.position - 1 - row) % self.capacity  # 0 for the last row written
        if (seed_at := np.nonzero(age < self.num_envs))[0].size:
            found[seed_at] = self.newest[seed_at[0], self.num_envs - 1 - age[seed_at]]
        self.final_obs.fill(row, found)
        return found

    def _measure_rewards(self) -> None:
        """Set each seed's reward size, once: the root mean square of its nonzero rewards.

        The first batch is drawn after warm-up. A seed without a reward is measured at a later one.
        """
        for seed in np.flatnonzero(np.isnan(self.reward_size)):
            rewards = self.rings["reward"][seed, : self.size].astype(np.float64)
            if rewards.any():
                self.reward_size[seed] = np.sqrt(np.square(rewards[rewards != 0]).mean())

    def rewrite(self, row: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Overwrite extra columns at the rows of a batch."""
        seed = np.arange(len(row))[:, None]
        for name, values in columns.items():
            self.rings[name][seed, row] = values

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint: filled rows, and next observations not in them."""
        rows = {name: ring[:, : self.size] for name, ring in self.rings.items()}
        return rows | self.final_obs.arrays() | {"newest": self.newest}

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of a checkpoint: sizes and the state of the generators."""
        return {
            "size": self.size,
            "position": self.position,
            "capacity": self.capacity,
            "num_envs": self.num_envs,
            "reward_size": [None if np.isnan(size) else size for size in self.reward_size.tolist()],
            "generators": [generator.bit_generator.state for generator in self.generators],
        }

    def restore(self, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
        """Restore what `arrays` and `metadata` returned.

        Removes its arrays from `arrays`, so that memory does not hold the buffer twice.
        """
        self._require_same_sizes(metadata)
        self.size, self.position = metadata["size"], metadata["position"]
        for name, ring in self.rings.items():
            rows = ring[:, : self.size]
            rows[...] = _take(arrays, name, rows)
        self.newest[...] = _take(arrays, "newest", self.newest)
        self.final_obs.restore(arrays, self.size)
        sizes, states = metadata.get("reward_size"), metadata.get("generators")
        try:
            for seed, (size, state) in enumerate(zip(sizes, states, strict=True)):  # type: ignore[arg-type]
                self.reward_size[seed] = np.nan if size is None else size
                self.generators[seed].bit_generator.state = state
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"checkpoint's replay has invalid metadata: {error}") from error

    def _require_same_sizes(self, saved: dict[str, Any]) -> None:
        """Refuse a buffer of other sizes: rows would be read in another order."""
        problem = "checkpoint's replay does not fit this run"
        for name in ("capacity", "num_envs"):
            mine, other = getattr(self, name), saved.get(name)
            if other != mine:
                raise UserError(f"{problem}: it has {field(name, other)}, this run has {mine}")
        size, position = saved.get("size"), saved.get("position")
        full = size == self.capacity and position in range(self.capacity)
        filling = size in range(0, self.capacity, self.num_envs) and position == size
        if not (type(size) is type(position) is int and (full or filling)):
            raise UserError(
                f"{problem}: {size} rows with the next at {position} is impossible for "
                f"{self.capacity} rows filled {self.num_envs} at a time"
            )

    def _newest_rows(self) -> np.ndarray:
        """Return the rows (E,) of the last step."""
        return (self.position - self.num_envs + np.arange(self.num_envs)) % self.capacity

    def _store_final(self, row: np.ndarray, next_obs: np.ndarray, following: np.ndarray) -> None:
        """Store the next observations (S, N, O) of rows (N,) that differ from the following ones.

        Compares bits, because 0.0 equals -0.0 and NaN does not equal itself.
        """
        bits = next_obs.view(np.uint32) != np.asarray(following, np.float32).view(np.uint32)
        seed, at = np.nonzero(bits.any(axis=-1))
        self.final_obs.put(seed, row[at], next_obs[seed, at])


def _pick(ring: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return rows (S, B) of a ring (S, capacity, ...), modulo its length."""
    found = np.empty((*row.shape, *ring.shape[2:]), ring.dtype)
    for own, its_rows, place in zip(ring, row, found, strict=True):
        own.take(its_rows, axis=0, out=place, mode="wrap")
    return found


def _take(arrays: dict[str, np.ndarray], name: str, like: np.ndarray) -> np.ndarray:
    """Remove and return an array that must have the shape and type of another."""
    array = arrays.pop(name, None)
    if array is None or (array.shape, array.dtype) != (like.shape, like.dtype):
        raise UserError(f"checkpoint's replay does not fit this run: {name} differs")
    return array


def _check_fits(num_bytes: int, capacity: int) -> None:
    available = free_memory()
    if num_bytes > available:
        fitting = int(capacity * 0.8 * available / num_bytes)
        raise UserError(
            f"replay would need {num_bytes / 1e9:.1f} GB and {available / 1e9:.1f} GB are free; "
            f"try {field('capacity', fitting)} or fewer {field('seeds')}"
        )
