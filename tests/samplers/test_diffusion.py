"""The diffusion chain: its constants, exact special cases, and known densities."""

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
)
from langevinrl.types import Array, PyTree, Spec

KEY = jax.random.key(3)
SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)


ACTOR = DenoisingActor(
    SPEC, (8, 8), "mish", 4, num_steps=3, schedule_name="linear", schedule_scale=0.8, start_std=0.5
)
PARAMS = jax.jit(ACTOR.init)(KEY)
OBS = jax.random.normal(KEY, (5, 3))


def test_linear_constants() -> None:
    mild, strong = make_schedule("linear", 20, 0.3), make_schedule("linear", 20, 0.8)
    np.testing.assert_allclose(
        mild.alpha_bar[jnp.array([0, 9, 19])], [0.99997, 0.47311, 0.034637], rtol=2e-5
    )
    np.testing.assert_allclose(
        strong.alpha_bar[jnp.array([9, 19])], [0.109435, 5.2684e-6], rtol=2e-5
    )
    np.testing.assert_allclose(
        make_schedule("linear", 100, 0.3).alpha_bar[99], 5.2142e-8, rtol=2e-5
    )
    np.testing.assert_allclose(
        make_schedule("linear", 20).beta[jnp.array([0, 19])], [1e-4, 0.999], rtol=1e-6
    )


def test_constants_of_the_originals() -> None:
    vp, cosine = make_schedule("vp", 20), make_schedule("cosine", 20)
    np.testing.assert_allclose(vp.beta[jnp.array([0, 19])], [0.0172249, 0.385917], rtol=2e-6)
    np.testing.assert_allclose(vp.alpha_bar[19], 0.00640933, rtol=2e-6)
    np.testing.assert_allclose(cosine.beta[jnp.array([0, 19])], [0.00799272, 0.999], rtol=2e-6)


def test_roots_keep_their_digits_at_the_cleanest_step() -> None:
    """Formed in float32 from ᾱ they would be off by 7e-4 at step 0."""
    schedule = make_schedule("linear", 20, 0.3)
    beta = 0.3 * np.linspace(1e-4, 0.999, 20)
    kept = np.cumprod(1 - beta)
    np.testing.assert_allclose(schedule.signal, np.sqrt(kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.noise, np.sqrt(1 - kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.inverse_signal, np.sqrt(1 / kept), rtol=2e-7)
    np.testing.assert_allclose(schedule.noise_to_signal, np.sqrt(1 / kept - 1), rtol=2e-7)


@pytest.mark.parametrize("name", ["linear", "vp", "cosine"])
def test_posterior_undoes_one_forward_step(name: ScheduleName) -> None:
    schedule = Schedule(*(np.asarray(c, np.float64) for c in make_schedule(name, 20, 0.8)))  # type: ignore[arg-type]
    before = np.append(1.0, schedule.alpha_bar[:-1])
    # Noisy actions of one clean action, moved by the posterior, have the law of a step earlier.
    mean = schedule.clean_weight + schedule.noisy_weight * np.sqrt(schedule.alpha_bar)
    spread = schedule.std**2 + schedule.noisy_weight**2 * (1 - schedule.alpha_bar)
    np.testing.assert_allclose(mean, np.sqrt(before), atol=1e-6)
    np.testing.assert_allclose(spread, 1 - before, atol=1e-6)


def test_last_step_keeps_the_clean_estimate_and_adds_nothing() -> None:
    schedule = make_schedule("linear", 20, 0.8)
    last = (schedule.clean_weight[0], schedule.noisy_weight[0], schedule.std[0])
    np.testing.assert_allclose(last, (1.0, 0.0, 0.0), atol=1e-6)
    assert (schedule.std[1:] > 0).all()


def test_forward_sample_by_hand_and_back() -> None:
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


@pytest.mark.parametrize("start_std", [0.0, 0.5, 10.0])
def test_perfect_noise_of_a_point_mass_returns_the_point(start_std: float) -> None:
    schedule, point = make_schedule("linear", 20, 0.8), jnp.array([[[0.3, -0.7]]])

    def perfect(x: Array, t: Array) -> Array:
        kept = schedule.alpha_bar[t]
        return (x - jnp.sqrt(kept) * point) / jnp.sqrt(1 - kept)

    action = denoise(perfect, schedule, (2, 5, 2), KEY, start_std=start_std)
    np.testing.assert_allclose(action, jnp.broadcast_to(point, (2, 5, 2)), atol=1e-5)


@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_clean_estimates_are_held_in_the_box(bound: float) -> None:
    schedule, seen = make_schedule("linear", 20, 0.3), []

    def push(x: Array, t: Array) -> Array:
        seen.append(x.shape)
        return jnp.full_like(x, -1e3)  # a clean action far beyond the box at every step

    action = denoise(push, schedule, (4, 2), KEY, bound=bound)
    np.testing.assert_allclose(action, bound, rtol=1e-6)
    assert seen == [(4, 2)]  # one scan: the network is traced once, not once a step


def test_one_step_by_hand() -> None:
    schedule = make_schedule("linear", 1, 0.8)  # beta = 0.8e-4
    start = 0.5 * jax.random.normal(jax.random.split(KEY)[0], (3, 2))
    action = denoise(lambda x, t: x * 0 + 2.0, schedule, (3, 2), KEY)
    kept = 1 - 0.8e-4
    by_hand = np.clip(np.asarray(start) / np.sqrt(kept) - 2.0 * np.sqrt(1 / kept - 1), -1, 1)
    np.testing.assert_allclose(action, by_hand, rtol=1e-4)


def test_gaussian_gets_its_mean_and_spread() -> None:
    schedule, mean, spread = make_schedule("linear", 20, 0.8), 0.3, 0.2
    kept = np.asarray(schedule.alpha_bar, np.float64)

    def exact(x: Array, t: Array) -> Array:
        bar = schedule.alpha_bar[t]
        total = bar * spread**2 + 1 - bar
        return jnp.sqrt(1 - bar) * (x - jnp.sqrt(bar) * mean) / total

    action = np.asarray(denoise(exact, schedule, (40_000, 1), KEY, bound=50.0, start_std=1.0))
    # The chain is linear here, so its spread follows from a recursion, discretisation included.
    variance = 1.0
    for t in range(19, -1, -1):
        pull = np.sqrt(kept[t]) * spread**2 / (kept[t] * spread**2 + 1 - kept[t])
        gain = float(schedule.clean_weight[t]) * pull + float(schedule.noisy_weight[t])
        variance = gain**2 * variance + float(schedule.std[t]) ** 2
    np.testing.assert_allclose(action.mean(), mean, atol=0.005)
    np.testing.assert_allclose(action.std(), np.sqrt(variance), rtol=0.02)


def test_two_modes_get_their_masses() -> None:
    schedule = make_schedule("linear", 100, 0.3)
    centres, masses = jnp.array([[-0.5, 0.6]]), jnp.array([[0.3, 0.7]])

    def exact(x: Array, t: Array) -> Array:
        bar = schedule.alpha_bar[t]
        total, gap = bar * 0.1**2 + 1 - bar, x - jnp.sqrt(bar) * centres  # (B, modes)
        share = jax.nn.softmax(jnp.log(masses) - jnp.square(gap) / (2 * total), axis=-1)
        return jnp.sqrt(1 - bar) / total * (share * gap).sum(axis=-1, keepdims=True)

    action = np.asarray(denoise(exact, schedule, (20_000, 1), KEY, bound=2.0, start_std=1.0))
    np.testing.assert_allclose((action < 0).mean(), 0.3, atol=0.02)
    np.testing.assert_allclose(action[action > 0].mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(action[action > 0].std(), 0.1, rtol=0.3)


def test_denoising_loss_by_hand() -> None:
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


def test_denoising_draws_every_step_and_one_per_row() -> None:
    schedule, steps = make_schedule("linear", 5, 0.8), []

    def predict(x: Array, t: Array) -> Array:
        steps.append(np.asarray(t))
        return x

    denoising(predict, schedule, jnp.zeros((10, 200, 1)), jnp.ones((10, 200)), KEY)
    assert steps[0].shape == (10, 200)  # copies of a row have steps of their own
    np.testing.assert_allclose(np.bincount(steps[0].ravel()) / 2_000, 0.2, atol=0.03)


def test_actor_draws_independent_candidates_in_the_box() -> None:
    action = np.asarray(ACTOR.sample(PARAMS, OBS, 4, KEY))
    assert action.shape == (4, 5, 2) and np.abs(action).max() <= 2.0
    assert len(np.unique(action.round(5), axis=0)) == 4


def test_candidates_are_the_chains_of_repeated_observations() -> None:
    tiled = jnp.tile(OBS[None], (4, 1, 1))

    def predict(x: Array, t: Array) -> Array:
        return ACTOR.network.apply(PARAMS, tiled, x, t)

    slow = denoise(predict, ACTOR.schedule, (4, 5, 2), KEY, bound=2.0, start_std=0.5)
    np.testing.assert_allclose(ACTOR.sample(PARAMS, OBS, 4, KEY), slow, atol=1e-5)


def test_actor_learns_a_point_by_denoising() -> None:
    obs, clean = jnp.zeros((64, 3)), jnp.full((64, 2), 1.5)

    def step(params: PyTree, key: Array) -> tuple[PyTree, Array]:
        loss, grads = jax.value_and_grad(ACTOR.loss)(params, obs, clean, jnp.ones(64), key)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss

    params, losses = jax.lax.scan(step, PARAMS, jax.random.split(KEY, 600))
    assert float(losses[-20:].mean()) < 0.5 * float(losses[:20].mean())
    assert float(jnp.abs(ACTOR.sample(params, obs[:1], 200, KEY) - 1.5).mean()) < 0.4
