"""Settings every test runs under."""

from __future__ import annotations

import jax

# (B,) on (B, 1) would broadcast to (B, B) without a word; here it is an error.
jax.config.update("jax_numpy_rank_promotion", "raise")
