"""Tests of environments that raise, hang, die or return bad values."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys

from langevinrl.envs.faults import EnvError
from langevinrl.envs.vector import VectorEnv
from langevinrl.envs.workers import Workers
from langevinrl.errors import UserError
from langevinrl.types import Transition

ZERO = np.zeros((1, 2, 1), np.float32)
SEEDS = [5]
WORDS = {
    "raises": r"raised RuntimeError: the wheel came off in step\(\) \(toys.py, line \d+\)",
    "calls sys.exit": r"raised SystemExit: 0 in step\(\) \(toys.py, line \d+\)",
    "hangs": r"did not come back from step\(\) within 0.5 s",
    "is nan": "gave a reward of nan",
    "shrinks": r"gave an observation of shape \(2,\); expected \(3,\)",
    "closes descriptors": r"lost its process in step\(\): it exited with 1",
    "exits": r"lost its process in step\(\): it exited with 7",
    "is killed": r"lost its process in step\(\): killed by signal 9 \(SIGKILL, as a system",
}
SERIAL = ["raises", "calls sys.exit", "hangs", "is nan", "shrinks"]
CASES = [(fault, False) for fault in SERIAL] + [(fault, True) for fault in WORDS]


def victim() -> float:
    """Return the start of the first of two environments."""
    return float(VectorEnv(toys.SavedClock, SEEDS, 2).reset()[0, 0, 0])


def failing(fault: str, asynchronous: bool, **options: Any) -> VectorEnv:
    """Build two environments, of which the first fails at its third step."""
    make = partial(toys.Failing, fault, victim())
    envs = VectorEnv(make, SEEDS, 2, asynchronous=asynchronous, **options)
    envs.vector.timeout = 0.5 if fault == "hangs" else 30.0  # building may take longer
    return envs


def left_behind(envs: VectorEnv) -> list[int]:
    """Return the worker processes that are alive."""
    processes = envs.vector.processes if isinstance(envs.vector, Workers) else []
    pids = [process.pid or 0 for process in processes]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(("fault", "asynchronous"), CASES)
def test_a_fault_raises_one_sentence(fault: str, asynchronous: bool) -> None:
    envs = failing(fault, asynchronous)
    envs.reset()
    envs.step(ZERO)
    envs.step(ZERO)
    began = time.monotonic()
    with pytest.raises(EnvError, match=f"environment 0 of seed 5 {WORDS[fault]}") as caught:
        envs.step(ZERO)
    assert time.monotonic() - began < 10
    assert "on_env_error=reset" in str(caught.value)
    if fault == "raises":  # the traceback of the user's code, in whichever process
        assert "in step" in str(caught.value.__cause__)
    envs.close()
    assert left_behind(envs) == []


def played(envs: VectorEnv, steps: int) -> tuple[list[Transition], list[list[bool]]]:
    """Return transitions, and which environments were cut at each step."""
    envs.reset()
    rows, cuts = [], []
    for _ in range(steps):
        rows.append(envs.step(ZERO))
        cuts.append(envs.cut[0].tolist())
    envs.close()
    return rows, cuts


@pytest.mark.parametrize(("fault", "asynchronous"), CASES)
def test_a_failed_environment_is_rebuilt_and_its_step_is_not_stored(
    fault: str, asynchronous: bool
) -> None:
    sound, _ = played(VectorEnv(toys.SavedClock, SEEDS, 2), 5)
    envs = failing(fault, asynchronous, on_error="reset")
    with pytest.warns(UserWarning, match=f"environment 0 .*{WORDS[fault]}.*rebuilt") as warned:
        rebuilt, cuts = played(envs, 5)
    assert len(warned) == 1
    assert [cut for pair in cuts for cut in pair] == [i == 4 for i in range(10)]
    for step, (ours, theirs) in enumerate(zip(rebuilt, sound, strict=True)):
        assert step >= 2 or all(map(np.array_equal, ours, theirs))
        for left, right in zip(ours, theirs, strict=True):  # the other environment is not affected
            np.testing.assert_array_equal(left[0, 1], right[0, 1])
    lost, after = rebuilt[2], rebuilt[3]
    # In place of the failed step: the first of the new environment, with the same action.
    assert lost.obs[0, 0, 0] != victim() and lost.obs[0, 0, 1] == 0
    assert lost.next_obs[0, 0, 1] == 1 and lost.bootstrap[0, 0] == 1
    np.testing.assert_array_equal(after.obs, lost.next_obs)
    assert all(np.isfinite(array).all() for row in rebuilt for array in row)
    assert left_behind(envs) == []


def test_a_second_failure_at_once_raises() -> None:
    class Hopeless(toys.SavedClock):
        def step(self, action: np.ndarray) -> Any:
            raise RuntimeError("never worked")

    envs = VectorEnv(Hopeless, SEEDS, 2, on_error="reset")
    envs.reset()
    with pytest.warns(UserWarning), pytest.raises(EnvError, match="and, rebuilt, raised"):
        envs.step(ZERO)


@pytest.mark.parametrize("reward", [np.ones(1), [1.0], np.ones((1, 1)), np.float32(1), 1, True])
def test_a_reward_of_one_element_is_a_number(reward: Any) -> None:
    class Packed(toys.SavedClock):
        def step(self, action: np.ndarray) -> Any:
            obs, _, *rest = super().step(action)
            return obs, reward, *rest

    envs = VectorEnv(Packed, SEEDS, 2)
    envs.reset()
    stored = envs.step(ZERO).reward
    assert stored.shape == (1, 2) and (stored == 1).all()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_sys_exit_in_a_constructor_raises_a_user_error(asynchronous: bool) -> None:
    with pytest.raises(UserError, match=r"cannot build .* it called sys.exit\(0\)"):
        VectorEnv(partial(sys.exit, 0), SEEDS, 1, asynchronous=asynchronous)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_error_in_state_dict_raises_one_sentence(asynchronous: bool) -> None:
    envs = VectorEnv(toys.Unsavable, SEEDS, 1, asynchronous=asynchronous)
    envs.reset()
    words = r"environment 0 of seed 5 raised KeyError: 'gear' in env_state\(\) \(toys.py, line"
    with pytest.raises(EnvError, match=words):
        envs.arrays()
    envs.close()


def test_environments_that_differ_raise() -> None:
    sizes = iter([1.0, 2.0])
    with pytest.raises(UserError, match="differ: the first has the action_space"):
        VectorEnv(lambda: toys.SavedClock(bound=next(sizes)), SEEDS, 2)
