"""Next observations that no row of the replay buffer holds, such as the last of an episode."""

from __future__ import annotations

import numpy as np

from langevinrl.errors import UserError


class FinalObs:
    """Next observations of the rows, in S rings, that need one of their own.

    The array has room for every row, but the system provides memory only as it is written, and
    freed places are reused first.  It therefore takes as much as was ever needed at once.
    """

    def __init__(self, num_seeds: int, capacity: int, obs_dim: int) -> None:
        self.place = np.zeros((num_seeds, capacity), np.int32)  # in `obs`; 0 for none
        self.obs = np.zeros((1 + num_seeds * capacity, obs_dim), np.float32)
        self.num_used = 0  # places ever used
        self.free: list[int] = []  # used places that are free again

    def put(self, seed: np.ndarray, row: np.ndarray, obs: np.ndarray) -> None:
        """Store observations (N, O) for rows (N,) of seeds (N,) that have none."""
        if not len(row):
            return
        reused = [self.free.pop() for _ in range(min(len(row), len(self.free)))]
        num_new = len(row) - len(reused)
        places = [*reused, *range(self.num_used + 1, self.num_used + num_new + 1)]
        self.num_used += num_new
        self.place[seed, row] = places
        self.obs[places] = obs

    def drop(self, row: np.ndarray) -> None:
        """Remove the observations of rows (N,) of every seed."""
        places = self.place[:, row]
        if places.any():
            self.free += places[places > 0].tolist()
            self.place[:, row] = 0

    def fill(self, row: np.ndarray, obs: np.ndarray) -> None:
        """Replace the observations (S, B, O) of those rows (S, B) that have their own."""
        seed = np.arange(len(row))[:, None]
        places = self.place[seed, row]
        if (at := np.nonzero(places))[0].size:
            obs[at] = self.obs[places[at]]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return seed and row (N, 2) of each, in order, and the observations (N, O)."""
        at = np.nonzero(self.place)
        return {"final_row": np.stack(at, axis=1).astype(np.int32),
                "final_obs": self.obs[self.place[at]]}  # fmt: skip

    def restore(self, arrays: dict[str, np.ndarray], size: int) -> None:
        """Move the observations of rows below `size` from `arrays` into this empty table."""
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
