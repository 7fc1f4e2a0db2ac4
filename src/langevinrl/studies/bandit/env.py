"""2D bandit with eight modes: reward, smoothed value and soft policy in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.types import Array

BOUND = 2.0  # half-width of the action box; the paper gives none, its best modes are at sqrt(2)
MODE_STD = 0.3  # standard deviation of every mode
NEAR = 0.3  # a sample this close to a high mode counts as on it
_ROOT = 2.0**0.5
CENTRES = np.array([
    [_ROOT, 0], [1, 1], [0, _ROOT], [-1, 1], [-_ROOT, 0], [-1, -1], [0, -_ROOT], [1, -1],
])  # fmt: skip
WEIGHTS = np.array([2.0, 1.0] * 4)
PEAK = 2.00298496  # the mixture's maximum, so that the best reward is 1
TV_CELLS = 25  # squares of 0.16 along an axis: every high mode is well inside one of them
HIGH_MODES = {"top": 2, "right": 0, "bottom": 6, "left": 4}  # in the order of the paper's table

AnyArray = TypeVar("AnyArray", np.ndarray, Array)


def reward(action: AnyArray) -> AnyArray:
    """Return the sum of eight Gaussians at actions (..., 2), with maximum 1; NumPy or JAX."""
    xp = action.__array_namespace__()
    lead = (1,) * (action.ndim - 1)
    offset = action[..., None, :] - xp.asarray(CENTRES.reshape(*lead, 8, 2), dtype=action.dtype)
    weight = xp.asarray(WEIGHTS.reshape(*lead, 8) / PEAK, dtype=action.dtype)
    return (weight * xp.exp(-(offset**2).sum(-1) / (2 * MODE_STD**2))).sum(-1)


@jax.jit
def smoothed_value(noisy: Array, sigma: Array | float, bound: float = BOUND) -> Array:
    """Return E[reward(a) | a + sigma z = noisy] for `a` uniform over the box.

    This is the target of the smoothing loss.  Along each axis a mode is a product of two Gaussians,
    truncated to the box and divided by the mass of the noise inside the box.  Far outside the box
    that mass underflows: use it in or near the box.
    """
    sigma = jnp.maximum(sigma, 1e-3)  # below that it is the reward itself to five digits
    lead = (1,) * (noisy.ndim - 1)
    centre = jnp.asarray(CENTRES, noisy.dtype).reshape(*lead, 8, 2)
    weight = jnp.asarray(WEIGHTS / PEAK, noisy.dtype).reshape(*lead, 8)
    x, total = noisy[..., None, :], MODE_STD**2 + sigma**2
    mean, std = (MODE_STD**2 * x + sigma**2 * centre) / total, MODE_STD * sigma / jnp.sqrt(total)
    mass = MODE_STD / jnp.sqrt(total) * jnp.exp(-((x - centre) ** 2) / (2 * total))
    axes = mass * _inside(mean, std, bound) / _inside(x, sigma, bound)
    return (weight * axes.prod(-1)).sum(-1)


def _inside(mean: Array, std: Array, bound: float) -> Array:
    """Return the mass of a Gaussian within [-bound, bound]."""

    def below(edge: float) -> Array:
        return jax.scipy.special.ndtr((edge - mean) / std)

    return below(bound) - below(-bound)


def grid(half: float, num: int) -> Array:
    """Return a grid of points over a square, (num, num, 2), with [i, j] at (x_i, y_j)."""
    axis = jnp.linspace(-half, half, num)
    return jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)


def near_high_modes(action: np.ndarray) -> np.ndarray:
    """Test if actions (B, 2) are within NEAR of the top, right, bottom and left mode: (B, 4)."""
    offset = action[:, None] - CENTRES[list(HIGH_MODES.values())]
    return (offset**2).sum(-1) <= NEAR**2


class Density(NamedTuple):
    """Density over the box on a grid of square cells."""

    axis: np.ndarray  # (G,)  centres of the cells along either axis
    mass: np.ndarray  # (G, G)  mass[i, j] at (axis[i], axis[j]), with sum one

    @property
    def actions(self) -> np.ndarray:
        """The centres of the cells, (G * G, 2)."""
        return np.stack(np.meshgrid(self.axis, self.axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def coarse(self, cells: int) -> np.ndarray:
        """Return the mass in `cells` x `cells` larger squares."""
        size = len(self.axis) // cells
        return self.mass.reshape(cells, size, cells, size).sum(axis=(1, 3))

    def total_variation(self, actions: np.ndarray, cells: int = TV_CELLS) -> float:
        """Return the total variation distance to the histogram of actions (B, 2)."""
        bound = self.axis[-1] + (self.axis[1] - self.axis[0]) / 2
        edges = np.linspace(-bound, bound, cells + 1)
        counts = np.histogram2d(actions[:, 0], actions[:, 1], bins=[edges, edges])[0]
        return float(np.abs(counts / len(actions) - self.coarse(cells)).sum() / 2)

    def sample(self, num: int, generator: np.random.Generator) -> np.ndarray:
        """Draw independent actions (num, 2), uniform within their cell."""
        size, step = len(self.axis), self.axis[1] - self.axis[0]
        cell = generator.choice(size * size, num, p=self.mass.ravel())
        centre = self.axis[np.stack(np.divmod(cell, size), axis=-1)]
        return centre + step * generator.uniform(-0.5, 0.5, centre.shape)


def reward_map(axis: np.ndarray) -> np.ndarray:
    """Return the reward on a square grid, [i, j] at (axis[i], axis[j])."""
    along = np.exp(-((axis[:, None, None] - CENTRES) ** 2) / (2 * MODE_STD**2))
    return (along[..., 0] * WEIGHTS / PEAK) @ along[..., 1].T


def soft_policy(inverse_temperature: float, bound: float = BOUND, cells: int = 800) -> Density:
    """Return exp(w r) / Z over the box by the midpoint rule; at w = 500 a mode has five cells."""
    edges = np.linspace(-bound, bound, cells + 1)
    axis = (edges[1:] + edges[:-1]) / 2
    r = reward_map(axis)
    mass = np.exp(inverse_temperature * (r - r.max()))
    return Density(axis, mass / mass.sum())


class Bandit(gym.Env[np.ndarray, np.ndarray]):
    """Environment with one constant observation and episodes of one step."""

    def __init__(self, bound: float = BOUND) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-bound, bound, (2,), np.float32)
        self._obs = np.zeros(1, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return self._obs.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        value = float(reward(np.asarray(action, np.float64)))
        return self._obs.copy(), value, True, False, {}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return no arrays: a step does not depend on those before it."""
        return {}

    def load_state_dict(self, arrays: dict[str, np.ndarray]) -> None:
        del arrays


def make() -> Bandit:
    """Make the bandit in its default box, for `--env langevinrl.studies.bandit.env:make`."""
    return Bandit()
