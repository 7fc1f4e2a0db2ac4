"""SDAC: its reverse-sampled denoising loss, and the critics its policy step uses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from parts import KEY, SPEC, make_batch, make_state, update

from langevinrl.agents.sdac import SDAC
from langevinrl.losses import reverse_denoising
from langevinrl.samplers.diffusion import Schedule, make_schedule
from langevinrl.types import Array, PyTree

AGENT = SDAC(SPEC, hidden=(8, 8), num_steps=4, best_of=2, num_noises=16, critic_learning_rate=0.1)
BATCH = make_batch(6)
OBS, ACTION = BATCH.obs, BATCH.action


def best_noise(
    schedule: Schedule, clean: Array, log_weight: Any, num_noises: int, bound: float
) -> Any:
    """Return noisy actions, their steps, and the predictions that minimise the loss."""

    def loss(guess: Array) -> tuple[Array, list[Array]]:
        seen: list[Array] = []

        def predict(x: Array, t: Array) -> Array:
            seen.extend((x, t))
            return guess

        sizes = {"num_noises": num_noises, "bound": bound}
        return reverse_denoising(predict, schedule, clean, log_weight, KEY, **sizes), seen

    # The loss is Σ_k p (guess - noise)² / KBA; its gradient at 0 is -2 p noise / KBA.
    gradient, (x, t) = jax.jit(jax.grad(loss, has_aux=True))(jnp.zeros_like(clean))
    return x, t, -gradient * num_noises * clean.size / 2


def test_loss_equals_the_formula() -> None:
    schedule = make_schedule("linear", 20, 0.8)
    bar = np.cumprod(1 - 0.8 * np.linspace(1e-4, 0.999, 20))

    def log_weight(candidates: Array) -> Array:
        return 3 * candidates[..., 0] - jnp.square(candidates[..., 1])

    loss = reverse_denoising(
        lambda x, t: 0.3 * x + 0.1 * t[:, None],
        schedule,
        ACTION,
        log_weight,
        KEY,
        num_noises=5,
        bound=2.0,
    )
    step_key, forward_key, reverse_key = jax.random.split(KEY, 3)
    t = np.asarray(jax.random.randint(step_key, (6,), 0, 20))
    forward = np.asarray(jax.random.normal(forward_key, (6, 2)))
    reverse = np.asarray(jax.random.normal(reverse_key, (5, 6, 2)))
    total = 0.0
    for b in range(6):
        kept = bar[t[b]]
        x = np.sqrt(kept) * np.asarray(ACTION)[b] + np.sqrt(1 - kept) * forward[b]
        clean = np.clip(x / np.sqrt(kept) - reverse[:, b] * np.sqrt(1 / kept - 1), -2, 2)
        p = np.exp(3 * clean[:, 0] - clean[:, 1] ** 2)
        p /= p.sum()
        total += (p[:, None] * (0.3 * x + 0.1 * t[b] - reverse[:, b]) ** 2).sum()
    np.testing.assert_allclose(loss, total / (5 * 6 * 2), rtol=1e-4)


def test_constant_value_gives_the_average_noise() -> None:
    schedule, clean = make_schedule("linear", 20, 0.8), jnp.zeros((500, 2))
    _, _, wanted = best_noise(schedule, clean, lambda c: 7.0 + 0 * c[..., 0], 64, 1.0)
    noise = jax.random.normal(jax.random.split(KEY, 3)[2], (64, 500, 2))
    np.testing.assert_allclose(wanted, noise.mean(axis=0), atol=1e-4)  # weights 1/64 each
    np.testing.assert_allclose(np.asarray(wanted).mean(), 0.0, atol=0.02)


def test_minimum_is_the_expected_noise_of_the_boltzmann_density() -> None:
    # For exp(Q) Gaussian, the noise expected at x is known: sqrt(1 - ᾱ)(x - sqrt(ᾱ) m) / total.
    schedule, mean, std = make_schedule("linear", 20, 0.3), 0.4, 0.8
    clean = mean + std * jax.random.normal(KEY, (200, 1))
    log_weight = lambda c: -jnp.square(c[..., 0] - mean) / (2 * std**2)  # noqa: E731
    x, t, wanted = best_noise(schedule, clean, log_weight, 4_000, 50.0)
    bar = np.asarray(schedule.alpha_bar)[np.asarray(t)][:, None]
    exact = np.sqrt(1 - bar) * (x - np.sqrt(bar) * mean) / (bar * std**2 + 1 - bar)
    np.testing.assert_allclose(wanted, exact, atol=0.25)
    assert float(np.abs(wanted - exact).mean()) < 0.03


def test_policy_step_uses_critics_and_temperature_before_the_update() -> None:
    state = make_state(AGENT)
    state = state._replace(temperature=state.temperature._replace(params=jnp.log(2.0)))
    after = update(AGENT, state, BATCH)
    action_key, noise_key = jax.random.split(jax.random.split(KEY)[1])
    action = jax.jit(AGENT._explore)(state, OBS, action_key)

    @jax.jit
    def loss_by(critic: PyTree) -> Array:
        return reverse_denoising(
            lambda x, t: AGENT.actor.network.apply(state.actor.params, OBS, x, t),
            make_schedule("linear", 4, 0.8),
            action,
            lambda c: 5.0 / 2.0 * AGENT.critics.network.apply(critic, OBS, c).min(axis=0),
            noise_key,
            num_noises=16,
            bound=2.0,
        )

    loss = loss_by(state.critic.params)
    np.testing.assert_allclose(after.metrics["policy/denoising"], loss, rtol=1e-4)
    assert abs(loss_by(after.state.critic.params) - loss) > 1e-4
    assert int(after.state.critic.opt_state[0].count) == 1
    assert float(after.metrics["temperature/alpha"]) < 2.0  # moves at the first update
