"""What training's own episodes have come to: returns and lengths of the latest."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

WINDOW = 100  # episodes per seed that a mean is taken over, as Stable-Baselines3 does


class EpisodeStats:
    """A running sum of raw rewards for each environment (S, E), and each seed's last episodes.

    Part of a checkpoint, so that a resumed run logs what an unbroken one does.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.totals = np.zeros(shape)
        self.lengths = np.zeros(shape, int)
        # (return, length) of each finished episode, the oldest first
        self.recent: list[deque[tuple[float, int]]] = [
            deque(maxlen=WINDOW) for _ in range(shape[0])
        ]

    def add(self, reward: np.ndarray, ended: np.ndarray, cut: np.ndarray | None = None) -> None:
        """Count one vector step: rewards (S, E), where an episode ended with it, and where (`cut`)
        the one before was lost with its environment, which does not count."""
        if cut is not None:
            self.totals[cut] = 0.0
            self.lengths[cut] = 0
        self.totals += reward
        self.lengths += 1
        if not ended.any():
            return
        for s, e in np.argwhere(ended):
            if not np.isnan(self.totals[s, e]):  # one whose beginning was not seen is not counted
                self.recent[s].append((float(self.totals[s, e]), int(self.lengths[s, e])))
        self.totals[ended] = 0.0
        self.lengths[ended] = 0

    def means(self, seed_index: int) -> dict[str, float]:
        """Mean return and length of a seed's last episodes; nothing before the first has ended."""
        episodes = self.recent[seed_index]
        if not episodes:
            return {}
        returns, lengths = zip(*episodes, strict=True)
        return {
            "rollout/ep_rew_mean": float(np.mean(returns)),
            "rollout/ep_len_mean": float(np.mean(lengths)),
        }

    def metadata(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {
            "totals": self.totals.tolist(),
            "lengths": self.lengths.tolist(),
            "recent": [list(map(list, episodes)) for episodes in self.recent],
        }

    def restore(self, saved: dict[str, Any] | None, exact: bool) -> None:
        """Go on from `metadata`; with fresh episodes unless the environments were put back."""
        if saved is not None:
            for episodes, old in zip(self.recent, saved["recent"], strict=True):
                episodes.extend((total, length) for total, length in old)
        if not exact:
            return
        if saved is None:  # a checkpoint of before this was kept: its episodes are under way
            self.totals[:] = np.nan
            return
        self.totals = np.array(saved["totals"], float)
        self.lengths = np.array(saved["lengths"], int)
