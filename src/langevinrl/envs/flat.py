"""The wrapper of every environment: flat observations and scalar rewards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from langevinrl.envs.spaces import TaskSpaces, require_box, require_observable
from langevinrl.errors import UserError


class FlatWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Flattens observations of any shape and turns rewards into numbers.

    It has no state.  `task` has the spaces of the wrapped environment.
    """

    def __init__(self, env: gym.Env[Any, Any], name: str, bound: float = 1.0) -> None:
        super().__init__(env)
        self.name = name
        space = env.observation_space
        require_observable(space, name)
        self.task = TaskSpaces(space, require_box(env.action_space, name), bound)
        self.is_flat = isinstance(space, gym.spaces.Box) and len(space.shape) == 1
        if not self.is_flat:
            size = (self.task.spec.obs_dim,)
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, size, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return self._flat(obs), info

    def step(self, action: np.ndarray) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not isinstance(reward, float | int | np.number):
            reward = self._scalar(np.asarray(reward))
        obs = self._flat(obs)
        if terminated or truncated:
            obs = np.array(obs)  # the next reset may write into the same array
        return obs, reward, terminated, truncated, info

    def _flat(self, obs: Any) -> Any:
        return obs if self.is_flat else self.task.flatten(obs)[0][0]

    def _scalar(self, reward: np.ndarray) -> Any:
        """Return the number in an array, list or tensor of one element; raise for any other."""
        numeric = np.issubdtype(reward.dtype, np.number)
        if reward.size != 1 or not numeric:
            found = f"of shape {reward.shape}" if numeric else f"that is not a number, {reward}"
            raise UserError(
                f"{self.name!r} returns a reward {found}; expected one number a step. "
                "Sum or weigh its parts in the environment."
            )
        return reward.reshape(()).item()
