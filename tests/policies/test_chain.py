"""A policy's tables, run, are the evaluation of the agent they were made from."""

from __future__ import annotations

import numpy as np
import pytest
from policies_by_case import CASES, OBS, SEED, described, expected, noise_of

from langevinrl.policies.fast import FastPolicy, _compile_keyed
from langevinrl.policies.methods import METHODS as DESCRIBED
from langevinrl.registry import METHODS

close = {"rtol": 0, "atol": 1e-4}


def test_every_method_is_among_the_cases() -> None:
    assert {METHODS[name].load() for name, _ in CASES.values()} == set(DESCRIBED)


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_chain_is_the_evaluation(case: str) -> None:
    fast = FastPolicy(described(case))
    np.testing.assert_allclose(fast(OBS, SEED), expected(case), **close)
    np.testing.assert_allclose(fast.with_noise(OBS, noise_of(case)), expected(case), **close)
    np.testing.assert_allclose(fast(OBS[:1], SEED[:1]), expected(case)[:1], **close)


def test_new_weights_compile_nothing() -> None:
    fast = FastPolicy(described("nclql"))
    again = FastPolicy(described("nclql"))
    assert fast._keyed is again._keyed
    assert _compile_keyed.cache_info().hits > 0
