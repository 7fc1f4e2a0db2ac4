"""Returns and lengths of the latest training episodes."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

WINDOW = 100  # episodes per seed in a mean, as in Stable-Baselines3


class EpisodeStats:
    """The running return of each environment (S, E) and the last episodes of each seed.

    It is saved in checkpoints, so that a resumed run logs the same as an uninterrupted one.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.totals = np.zeros(shape)
        self.lengths = np.zeros(shape, int)
        # (return, length) of each finished episode, oldest first
        self.recent: list[deque[tuple[float, int]]] = [
            deque(maxlen=WINDOW) for _ in range(shape[0])
        ]

    def add(self, reward: np.ndarray, ended: np.ndarray, cut: np.ndarray | None = None) -> None:
        """Add one vector step: rewards (S, E) and masks of ended episodes.

        `cut` marks environments that were rebuilt, whose previous episode does not count.
        """
        if cut is not None:
            self.totals[cut] = 0.0
            self.lengths[cut] = 0
        self.totals += reward
        self.lengths += 1
        if not ended.any():
            return
        for s, e in np.argwhere(ended):
            self.recent[s].append((float(self.totals[s, e]), int(self.lengths[s, e])))
        self.totals[ended] = 0.0
        self.lengths[ended] = 0

    def means(self, seed_index: int) -> dict[str, float]:
        """Return the mean return and length of a seed's last episodes; empty before the first."""
        episodes = self.recent[seed_index]
        if not episodes:
            return {}
        returns, lengths = zip(*episodes, strict=True)
        return {
            "rollout/ep_rew_mean": float(np.mean(returns)),
            "rollout/ep_len_mean": float(np.mean(lengths)),
        }

    def metadata(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "totals": self.totals.tolist(),
            "lengths": self.lengths.tolist(),
            "recent": [list(map(list, episodes)) for episodes in self.recent],
        }

    def restore(self, saved: dict[str, Any], exact: bool) -> None:
        """Continue from `metadata`; unfinished episodes count only if `exact`."""
        for episodes, old in zip(self.recent, saved["recent"], strict=True):
            episodes.extend((total, length) for total, length in old)
        if exact:
            self.totals = np.array(saved["totals"], float)
            self.lengths = np.array(saved["lengths"], int)
