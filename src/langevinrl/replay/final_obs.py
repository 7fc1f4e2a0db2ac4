"""Observations that no row of replay holds, such as the last of an episode."""

from __future__ import annotations

import numpy as np

from langevinrl.errors import UserError


class FinalObs:
    """The next observation of those rows, of S rings, that need one of their own.

    Room for one to each row is asked of the system, which gives it only as it is written; places
    that are given back are used again first.  So it takes as much as were ever needed together.
    """

    def __init__(self, num_seeds: int, capacity: int, obs_dim: int) -> None:
        self.place = np.zeros((num_seeds, capacity), np.int32)  # in `obs`; 0 for none
        self.obs = np.zeros((1 + num_seeds * capacity, obs_dim), np.float32)
        self.num_used = 0  # places ever used
        self.given_back: list[int] = []

    def put(self, seed: np.ndarray, row: np.ndarray, obs: np.ndarray) -> None:
        """Keep observations (N, O) for rows (N,) of seeds (N,) that have none."""
        if not len(row):
            return
        again = [self.given_back.pop() for _ in range(min(len(row), len(self.given_back)))]
        num_fresh = len(row) - len(again)
        places = [*again, *range(self.num_used + 1, self.num_used + num_fresh + 1)]
        self.num_used += num_fresh
        self.place[seed, row] = places
        self.obs[places] = obs

    def drop(self, row: np.ndarray) -> None:
        """Forget those of rows (N,) of every seed."""
        places = self.place[:, row]
        if places.any():
            self.given_back += places[places > 0].tolist()
            self.place[:, row] = 0

    def fill(self, row: np.ndarray, obs: np.ndarray) -> None:
        """Write them over observations (S, B, O) of rows (S, B)."""
        seed = np.arange(len(row))[:, None]
        places = self.place[seed, row]
        if (at := np.nonzero(places))[0].size:
            obs[at] = self.obs[places[at]]

    def arrays(self) -> dict[str, np.ndarray]:
        """Seed and row (N, 2) of each, in order, and the observations (N, O)."""
        at = np.nonzero(self.place)
        return {"final_row": np.stack(at, axis=1).astype(np.int32),
                "final_obs": self.obs[self.place[at]]}  # fmt: skip

    def restore(self, arrays: dict[str, np.ndarray], size: int) -> None:
        """Take those of rows below `size` out of `arrays`, into an empty table."""
        rows, obs = arrays.pop("final_row", None), arrays.pop("final_obs", None)
        if rows is None or obs is None or not self._are_sound(rows, obs, size):
            raise UserError("checkpoint's replay does not fit this run: final_obs differs")
        self.put(rows[:, 0], rows[:, 1], obs)

    def _are_sound(self, rows: np.ndarray, obs: np.ndarray, size: int) -> bool:
        num_seeds, capacity = self.place.shape
        shapes = rows.shape == (len(rows), 2) and obs.shape == (len(rows), self.obs.shape[1])
        if not shapes or rows.dtype != np.int32 or obs.dtype != np.float32:
            return False
        within = (rows >= 0).all() and (rows < (num_seeds, size)).all()
        return bool(within and (np.diff(rows.astype(np.int64) @ (capacity, 1)) > 0).all())
