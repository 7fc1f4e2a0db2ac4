"""The diffusion chain: constants, exact special cases and known densities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.actors import DenoisingActor
from langevinrl.losses import denoising
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
from langevinrl.types import Array, PyTree, Spec

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


def test_last_step_returns_the_clean_estimate_without_noise() -> None:
    schedule = make_schedule("linear", 20, 0.8)
    last = (schedule.clean_weight[0], schedule.noisy_weight[0], schedule.std[0])
    np.testing.assert_allclose(last, (1.0, 0.0, 0.0), atol=1e-6)
    assert (schedule.std[1:] > 0).all()


def test_predict_clean_inverts_the_forward_sample() -> None:
    schedule = make_schedule("linear", 20, 0.3)
    clean, noise = jnp.array([[0.5, -1.0], [0.2, 0.8]]), jnp.array([[1.0, 2.0], [-1.0, 0.5]])
    t = jnp.array([9, 0])
    noisy = add_noise(schedule, clean, t, noise)
    kept, lost = np.sqrt(0.47311), np.sqrt(1 - 0.47311)
    np.testing.assert_allclose(noisy[0], [0.5 * kept + lost, -kept + 2 * lost], rtol=1e-4)
    np.testing.assert_allclose(predict_clean(schedule, noisy, t, noise), clean, atol=1e-5)
    wide = predict_clean(schedule, noisy[None], t[None], jnp.stack([noise, 0 * noise]))
    np.testing.assert_allclose(wide[0], clean, atol=1e-5)
    np.testing.assert_allclose(wide[1, 0], noisy[0] / kept, rtol=1e-4)


def test_exact_noise_of_a_point_mass_returns_the_point_from_any_start() -> None:
    schedule, point = make_schedule("linear", 20, 0.8), jnp.array([[[0.3, -0.7]]])

    def exact(x: Array, t: Array) -> Array:
        kept = schedule.alpha_bar[t]
        return (x - jnp.sqrt(kept) * point) / jnp.sqrt(1 - kept)

    start, noise = normal(20, 2, 5, 2)
    action = denoise(exact, schedule, 10 * start, noise)
    np.testing.assert_allclose(action, jnp.broadcast_to(point, (2, 5, 2)), atol=1e-5)


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


def test_chain_samples_a_gaussian() -> None:
    schedule, mean, std = make_schedule("linear", 20, 0.8), 0.3, 0.2
    kept = np.asarray(schedule.alpha_bar, np.float64)

    def exact(x: Array, t: Array) -> Array:
        bar = schedule.alpha_bar[t]
        total = bar * std**2 + 1 - bar
        return jnp.sqrt(1 - bar) * (x - jnp.sqrt(bar) * mean) / total

    action = np.asarray(denoise(exact, schedule, *normal(20, 40_000, 1), bound=50.0))
    # The chain is linear here, so its variance follows from a recursion.
    variance = 1.0
    for t in range(19, -1, -1):
        pull = np.sqrt(kept[t]) * std**2 / (kept[t] * std**2 + 1 - kept[t])
        gain = float(schedule.clean_weight[t]) * pull + float(schedule.noisy_weight[t])
        variance = gain**2 * variance + float(schedule.std[t]) ** 2
    np.testing.assert_allclose(action.mean(), mean, atol=0.005)
    np.testing.assert_allclose(action.std(), np.sqrt(variance), rtol=0.02)


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


def test_denoising_loss_equals_the_formula() -> None:
    schedule = make_schedule("linear", 20, 0.8)
    clean = jax.random.uniform(KEY, (6, 2), minval=-1.0)
    weight = jnp.array([0.0, 1.0, 2.0, 0.5, 3.0, 1.0])
    loss = denoising(lambda x, t: 0.5 * x + 0.1 * t[:, None], schedule, clean, weight, KEY)
    step_key, noise_key = jax.random.split(KEY)
    t = np.asarray(jax.random.randint(step_key, (6,), 0, 20))
    noise = np.asarray(jax.random.normal(noise_key, (6, 2)))
    bar, total = np.cumprod(1 - 0.8 * np.linspace(1e-4, 0.999, 20)), 0.0
    for b in range(6):
        x = np.sqrt(bar[t[b]]) * np.asarray(clean)[b] + np.sqrt(1 - bar[t[b]]) * noise[b]
        total += float(weight[b]) * ((0.5 * x + 0.1 * t[b] - noise[b]) ** 2).sum()
    np.testing.assert_allclose(loss, total / 12, rtol=1e-5)


def test_denoising_loss_draws_a_step_for_each_row() -> None:
    schedule, steps = make_schedule("linear", 5, 0.8), []

    def predict(x: Array, t: Array) -> Array:
        steps.append(np.asarray(t))
        return x

    denoising(predict, schedule, jnp.zeros((10, 200, 1)), jnp.ones((10, 200)), KEY)
    assert steps[0].shape == (10, 200)  # copies of a row have steps of their own
    np.testing.assert_allclose(np.bincount(steps[0].ravel()) / 2_000, 0.2, atol=0.03)


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


def test_actor_learns_a_single_action() -> None:
    obs, clean = jnp.zeros((64, 3)), jnp.full((64, 2), 1.5)

    def step(params: PyTree, key: Array) -> tuple[PyTree, Array]:
        loss, grads = jax.value_and_grad(ACTOR.loss)(params, obs, clean, jnp.ones(64), key)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss

    params, losses = jax.lax.scan(step, PARAMS, jax.random.split(KEY, 600))
    assert float(losses[-20:].mean()) < 0.5 * float(losses[:20].mean())
    assert (
        float(jnp.abs(ACTOR.sample(params, obs[:1], ACTOR.noise(KEY, 1, 200)) - 1.5).mean()) < 0.4
    )
