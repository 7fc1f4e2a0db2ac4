"""Runs an exported policy with NumPy alone: NumpyPolicy("policy.npz", seed=0)(obs)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy import ndarray


def activate(name: str, z: ndarray) -> tuple[ndarray, ndarray]:
    """An activation and its derivative."""
    if name == "relu":
        return np.maximum(z, 0.0), (z > 0.0).astype(z.dtype)
    if name == "mish":  # z tanh(softplus z); past 20 the gate is 1
        e = np.exp(np.minimum(z, 20.0))
        n = e * (e + 2.0)
        gate = n / (n + 2.0)
        return z * gate, gate + z * (4.0 * e * (e + 1.0) / np.square(n + 2.0))
    # gelu: z Φ(z), by the fit 7.1.26 of Abramowitz and Stegun to erf, whose error is 1.5e-7
    density, t = np.exp(-0.5 * np.square(z)), 1.0 / (1.0 + 0.3275911 / 2**0.5 * np.abs(z))
    fit = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    tail = 0.5 * t * (0.254829592 + t * (-0.284496736 + t * fit)) * density
    cdf = np.where(z < 0.0, tail, 1.0 - tail)
    return z * cdf, cdf + z * density / (2 * np.pi) ** 0.5


def normalise(norm: str, z: ndarray) -> tuple[ndarray, ndarray | float]:
    """Rows over their root mean square if the norm is rms, and the factor on each."""
    if norm == "none":
        return z, 1.0
    scale = 1.0 / np.sqrt(np.square(z).mean(axis=-1, keepdims=True) + np.float32(1e-6))
    return z * scale, scale


class Network:
    """M perceptrons on (obs, action); `rows` is what each step adds to their first layers."""

    def __init__(self, arrays: dict[str, ndarray], name: str, facts: dict[str, Any]) -> None:
        own = name if f"{name}.obs" in arrays else "field"  # the judge may be the field's critics
        self.obs, self.action = arrays[f"{own}.obs"], arrays[f"{own}.action"]
        self.rows, self.activation = arrays[f"{name}.rows"][:, :, None], facts["activation"]
        self.norm = facts.get("norm", "none")  # files from before there were norms do not say
        depth = range(sum(key.startswith(f"{own}.weight.") for key in arrays))
        self.layers = [(arrays[f"{own}.weight.{i}"], arrays[f"{own}.bias.{i}"]) for i in depth]

    def forward(self, first: ndarray, x: ndarray, step: int) -> tuple[ndarray, list[Any]]:
        """Outputs (M, R, out) at actions (R, A); each layer's slope, normed row and factor."""
        z, layers = first + self.rows[step] + x @ self.action, []
        for weight, bias in self.layers:
            z, scale = normalise(self.norm, z)
            h, slope = activate(self.activation, z)
            layers.append((slope, z, scale))
            z = h @ weight + bias[:, None]
        return z, layers

    def gradient(self, first: ndarray, x: ndarray, step: int) -> ndarray:
        """Gradient in actions (R, A) of the sum of all members' values: (R, A)."""
        layers = self.forward(first, x, step)[1]
        g = np.ones((len(self.obs), 1, 1), np.float32)
        for (weight, _), (slope, z, scale) in zip(self.layers[::-1], layers[::-1], strict=True):
            g = (g @ weight.swapaxes(1, 2)) * slope
            if self.norm == "rms":
                g = scale * (g - z * (g * z).mean(axis=-1, keepdims=True))
        return (g @ self.action.swapaxes(1, 2)).sum(axis=0)


class NumpyPolicy:
    """A policy read from the .npz that `langevinrl export --format numpy` writes."""

    def __init__(self, path: Any, seed: int | None = None) -> None:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        self.facts: dict[str, Any] = json.loads(str(arrays["facts"]))
        self.steps, self.num = arrays["steps"].tolist(), self.facts["best_of"]
        self.limits = arrays.get("limits")  # (steps,)  how far the field may move a point, if said
        self.centre, self.stretch = arrays["centre"], arrays["stretch"]
        self.field = Network(arrays, "field", self.facts)
        if self.num > 1:
            self.judge = Network(arrays, "judge", self.facts)
        self.noise_shape = (self.facts["num_draws"], self.num, self.facts["act_dim"])
        self.rng = np.random.default_rng(seed)

    def draw_noise(self, batch: int = 1) -> ndarray:
        """Noise (B, draws, N, A): standard normal, but a uniform start is within [-1, 1]."""
        noise = self.rng.standard_normal((batch, *self.noise_shape), np.float32)
        if self.facts["start"] == "uniform":
            noise[:, 0] = self.rng.uniform(-1.0, 1.0, noise[:, 0].shape)
        return noise

    def __call__(self, obs: Any, noise: ndarray | None = None) -> ndarray:
        """The action for one observation (O,) or several (B, O); draws its noise unless given."""
        rows = np.atleast_2d(np.asarray(obs, np.float32))
        z = self.draw_noise(len(rows)) if noise is None else np.asarray(noise, np.float32)
        z = z.reshape(len(rows), *self.noise_shape).swapaxes(0, 1)
        x = self._walk(rows, z.reshape(len(z), len(rows) * self.num, z.shape[-1]))
        action = self.centre + self.stretch * self._choose(rows, x)
        return action[0] if np.ndim(obs) == 1 else action

    def _walk(self, obs: ndarray, z: ndarray) -> ndarray:
        """Every candidate's chain, from noise (draws, B N, A) to its end (B N, A)."""
        facts, bound = self.facts, self.facts["bound"]
        first = np.repeat(obs @ self.field.obs, self.num, axis=1)  # (M, B N, H), for all steps
        x = facts["start_scale"] * z[:1].sum(axis=0)  # zero where there is no draw
        for step, (of_x, of_field, of_guess, keep, spread) in enumerate(self.steps):
            drift = of_field * self._field(first, x, step)
            if self.limits is not None:
                length = np.sqrt(np.square(drift).sum(axis=-1, keepdims=True)) + 1e-12
                drift = drift * np.minimum(1.0, self.limits[step] / length)
            guess = of_x * x + drift
            guess = guess.clip(-bound, bound) if facts["clip_guess"] else guess
            x = of_guess * guess + keep * x + (spread * z[step + 1] if len(z) > 1 else 0.0)
            x = x.clip(-bound, bound) if facts["clip_step"] else x
        return (bound * np.tanh(x) if facts["squash"] else x).clip(-bound, bound)

    def _field(self, first: ndarray, x: ndarray, step: int) -> ndarray:
        if self.facts["drift"] == "network":
            return self.field.forward(first, x, step)[0][0]
        gradient = self.field.gradient(first, x, step)
        length = np.sqrt(np.square(gradient).sum(axis=-1, keepdims=True)) + 1e-8
        return gradient / length if self.facts["normalise"] else gradient

    def _choose(self, obs: ndarray, x: ndarray) -> ndarray:
        """The candidate of (B N, A) that the lesser critic values most: (B, A)."""
        candidates = x.reshape(len(obs), self.num, -1)
        if self.num == 1:
            return candidates[:, 0]
        first = np.repeat(obs @ self.judge.obs, self.num, axis=1)
        value = self.judge.forward(first, x, 0)[0][..., 0].min(axis=0)
        return candidates[np.arange(len(obs)), value.reshape(len(obs), -1).argmax(axis=1)]
