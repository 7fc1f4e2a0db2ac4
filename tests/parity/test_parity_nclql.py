"""NC-LQL's updates, losses, values and actions equal those of the authors' released code."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from test_parity import Draws, assert_equal, batch_of, begin, critics, draws, load, nclql_layers

__all__ = ["draws"]  # a fixture


def test_nclql_equals_the_released_code(draws: Draws) -> None:
    table = load("nclql")
    agent, state = begin("nclql", table)
    for k in range(5):
        draws.record("uniform", table["in/start"][k][None])
        draws.record("normal", *table["in/chain"][k][:, None])
        draws.record("randint", table["in/level"][k])
        draws.record("normal", table["in/pert"][k])
        state, metrics, _ = agent.update(state, batch_of(table, k), jax.random.key(k))
        assert draws.all_taken()
        place = f"out/{k + 1}"
        bellman = table[f"{place}/td_q1_loss"] + table[f"{place}/td_q2_loss"]
        smoothing = table[f"{place}/qt1_loss"] + table[f"{place}/qt2_loss"]
        assert_equal(metrics["critic/bellman"], bellman)
        assert_equal(metrics["critic/smoothing"], smoothing)
        if f"{place}/act" in table:
            draws.record("uniform", table["in/act_start"][None])
            draws.record("normal", *table["in/act_chain"][:, None])
            obs = jnp.asarray(table["in/act_obs"])
            action = agent.act(state, obs, jax.random.key(0), explore=True)
            assert_equal(action, table[f"{place}/act"])
    for prefix, ours in (("", state.critic.params), ("target_", state.critic.target_params)):
        pair = [nclql_layers(table, f"5/{prefix}{q}") for q in ("q1", "q2")]
        assert_equal(ours, critics(ours, pair))
    first = batch_of(table, 0)
    for member in range(2):
        values = [agent.critic.apply(state.critic.params, first.obs, first.action, level)[member]
                  for level in range(10)]  # fmt: skip
        assert_equal(np.stack(values), table[f"out/5/Q{member}"])
