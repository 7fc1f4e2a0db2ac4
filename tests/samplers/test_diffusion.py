"""The diffusion chain: constants, exact special cases and known densities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.actors import DenoisingActor
from langevinrl.samplers.diffusion import (
    Schedule,
    ScheduleName,
    add_noise,
    denoise,
    make_schedule,
    predict_clean,
    reverse,
)
from langevinrl.samplers.noise import draw_chain_noise
from langevinrl.types import Array, Spec

KEY = jax.random.key(3)
SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)
ACTOR = DenoisingActor(
    SPEC, (8, 8), "mish", 4, num_steps=3, schedule_name="linear", schedule_scale=0.8, start_std=0.5
)
PARAMS = jax.jit(ACTOR.init)(KEY)
OBS = jax.random.normal(KEY, (5, 3))


def normal(num_steps: int, *shape: int) -> tuple[Array, Array]:
    """Draw a standard normal start and the noise of every step."""
    start_key, noise_key = jax.random.split(KEY)
    noise = jax.random.normal(noise_key, (num_steps, *shape))
    return jax.random.normal(start_key, shape), noise


@pytest.mark.parametrize(
    ("name", "num_steps", "scale", "step", "beta", "alpha_bar"),
    [
        ("linear", 20, 0.3, 0, 3e-5, 0.99997),
        ("linear", 20, 0.3, 19, 0.2997, 0.034637),
        ("linear", 20, 0.8, 19, 0.7992, 5.2684e-6),
        ("linear", 100, 0.3, 99, 0.2997, 5.2142e-8),
        ("vp", 20, 1.0, 0, 0.0172249, 0.982775),
        ("vp", 20, 1.0, 19, 0.385917, 0.00640933),
        ("cosine", 20, 1.0, 0, 0.00799272, 0.992007),
    ],
)
def test_constants_of_each_schedule(
    name: ScheduleName, num_steps: int, scale: float, step: int, beta: float, alpha_bar: float
) -> None:
    schedule = make_schedule(name, num_steps, scale)
    np.testing.assert_allclose(schedule.beta[step], beta, rtol=2e-6)
    np.testing.assert_allclose(schedule.alpha_bar[step], alpha_bar, rtol=2e-5)


def test_roots_are_precise_at_the_cleanest_step() -> None:
    """Computed in float32 from ᾱ they would be off by 7e-4 at step 0."""
    schedule = make_schedule("linear", 20, 0.3)
    kept = np.cumprod(1 - 0.3 * np.linspace(1e-4, 0.999, 20))
    np.testing.assert_allclose(schedule.signal, np.sqrt(kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.noise, np.sqrt(1 - kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.inverse_signal, np.sqrt(1 / kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.noise_to_signal, np.sqrt(1 / kept - 1), rtol=2e-7)


@pytest.mark.parametrize("name", ["linear", "vp", "cosine"])
def test_posterior_undoes_one_forward_step(name: ScheduleName) -> None:
    schedule = Schedule(*(np.asarray(c, np.float64) for c in make_schedule(name, 20, 0.8)))  # type: ignore[arg-type]
    before = np.append(1.0, schedule.alpha_bar[:-1])
    # The posterior turns the distribution of a noisy action into that of one step earlier.
    mean = schedule.clean_weight + schedule.noisy_weight * np.sqrt(schedule.alpha_bar)
    variance = schedule.std**2 + schedule.noisy_weight**2 * (1 - schedule.alpha_bar)
    np.testing.assert_allclose(mean, np.sqrt(before), atol=1e-6)
    np.testing.assert_allclose(variance, 1 - before, atol=1e-6)


def test_predict_clean_inverts_the_forward_sample() -> None:
    schedule = make_schedule("linear", 20, 0.3)
    clean, noise = jnp.array([[0.5, -1.0], [0.2, 0.8]]), jnp.array([[1.0, 2.0], [-1.0, 0.5]])
    t = jnp.array([9, 0])
    noisy = add_noise(schedule, clean, t, noise)
    kept, lost = np.sqrt(0.47311), np.sqrt(1 - 0.47311)
    np.testing.assert_allclose(noisy[0], [0.5 * kept + lost, -kept + 2 * lost], rtol=1e-4)
    np.testing.assert_allclose(predict_clean(schedule, noisy, t, noise), clean, atol=1e-5)


@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_clean_estimates_are_clipped_to_the_box(bound: float) -> None:
    schedule, seen = make_schedule("linear", 20, 0.3), []

    def push(x: Array, t: Array) -> Array:
        seen.append(x.shape)
        return jnp.full_like(x, -1e3)  # a clean action far beyond the box at every step

    action = denoise(push, schedule, *normal(20, 4, 2), bound=bound)
    np.testing.assert_allclose(action, bound, rtol=1e-6)
    assert seen == [(4, 2)]  # one scan traces the network once, not once per step


def test_two_steps_equal_the_formula() -> None:
    """The first noise belongs to the noisiest step; the last step adds none."""
    schedule = make_schedule("linear", 2, 0.8)
    start, noise = normal(2, 3, 2)
    path = denoise(lambda x, t: x * 0 + 2.0 * t, schedule, start, noise, trace=True)
    beta = 0.8 * np.array([1e-4, 0.999])
    bar = np.cumprod(1 - beta)
    x, points = np.asarray(start), [np.asarray(start)]
    for t in (1, 0):
        before = bar[0] if t else 1.0
        clean = np.clip(x / np.sqrt(bar[t]) - 2.0 * t * np.sqrt(1 / bar[t] - 1), -1, 1)
        mean = np.sqrt(before) * beta[t] * clean + np.sqrt(1 - beta[t]) * (1 - before) * x
        std = np.sqrt(beta[t] * (1 - before) / (1 - bar[t]))
        x = mean / (1 - bar[t]) + std * np.asarray(noise[1 - t])
        points.append(x)
    np.testing.assert_allclose(path, points, rtol=1e-4, atol=1e-5)


def test_chain_samples_two_modes_in_proportion_to_their_mass() -> None:
    schedule = make_schedule("linear", 100, 0.3)
    centres, masses = jnp.array([[-0.5, 0.6]]), jnp.array([[0.3, 0.7]])

    def exact(x: Array, t: Array) -> Array:
        bar = schedule.alpha_bar[t]
        total, gap = bar * 0.1**2 + 1 - bar, x - jnp.sqrt(bar) * centres  # (B, modes)
        share = jax.nn.softmax(jnp.log(masses) - jnp.square(gap) / (2 * total), axis=-1)
        return jnp.sqrt(1 - bar) / total * (share * gap).sum(axis=-1, keepdims=True)

    action = np.asarray(denoise(exact, schedule, *normal(100, 20_000, 1), bound=2.0))
    np.testing.assert_allclose((action < 0).mean(), 0.3, atol=0.02)
    np.testing.assert_allclose(action[action > 0].mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(action[action > 0].std(), 0.1, rtol=0.3)


def test_reverse_chain_keeps_a_standard_normal() -> None:
    # For data N(0, 1) the noise in x_t is sqrt(1 - ᾱ) x on average; only the last step adds none.
    schedule = make_schedule("vp", 10)

    def exact(x: Array, t: Array) -> Array:
        return jnp.sqrt(1 - schedule.alpha_bar[t]) * x

    x = reverse(exact, schedule, *normal(10, 40_000, 1), bound=100.0)
    np.testing.assert_allclose(x.var(), 1 - schedule.beta[0], rtol=0.02)


def test_candidates_equal_chains_of_repeated_observations() -> None:
    noise = draw_chain_noise(KEY, 5, 3, 4, SPEC)
    action = np.asarray(ACTOR.sample(PARAMS, OBS, noise))
    assert action.shape == (4, 5, 2) and np.abs(action).max() <= 2.0
    tiled = jnp.tile(OBS[None], (4, 1, 1))
    start, steps = noise.for_chains()
    slow = denoise(
        lambda x, t: ACTOR.network.apply(PARAMS, tiled, x, t),
        ACTOR.schedule, 0.5 * start, steps, bound=2.0,
    )  # fmt: skip
    np.testing.assert_allclose(action, slow, atol=1e-5)
    assert len(np.unique(action.round(5), axis=0)) == 4
