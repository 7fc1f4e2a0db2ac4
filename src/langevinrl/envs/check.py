"""Checks of an environment before training, reported as findings.

Gymnasium's checker covers its API.  The checks here cover what training needs beyond it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils.passive_env_checker import (
    check_action_space,
    check_observation_space,
    env_reset_passive_checker,
    env_step_passive_checker,
)

from langevinrl.envs.factory import EnvLike, name_of
from langevinrl.envs.faults import EnvError, raised
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError

NUM_STEPS = 25  # at most
SEED = 1
_GYMNASIUM = re.compile(r"(?:\x1b\[\d+m)?WARN: (.*?)(?:\x1b\[0m)?", re.DOTALL)


class Finding(NamedTuple):
    """One problem of an environment."""

    is_error: bool  # else a warning
    sentence: str


_STATISTICS = "keeps separate statistics in each environment and starts again in every evaluation."
# Wrappers of Gymnasium that do harm in training.
WRAPPERS = {
    "Autoreset": Finding(
        True, "the wrapper Autoreset restarts episodes, which training does itself. Remove it."
    ),
    "NormalizeObservation": Finding(
        False,
        f"NormalizeObservation {_STATISTICS} Use langevinrl.standardise, which measures them once "
        "and gives every environment the same.",
    ),
    "NormalizeReward": Finding(
        False,
        f"NormalizeReward {_STATISTICS} Leave it out and use the fields reward_norm or "
        "reward_scale, saved with the run.",
    ),
}


def require_sound(env: EnvLike) -> None:
    """Raise a UserError that lists the errors; warn of every other finding."""
    (findings, cause), name = _examine(env), name_of(env)
    if any(finding.is_error for finding in findings):
        sentences = " ".join(finding.sentence for finding in findings)
        raise UserError(f"{name!r} cannot be trained on: {sentences}") from cause
    for finding in findings:
        warnings.warn(f"{name}: {finding.sentence}", stacklevel=2)


def check_env(env: EnvLike) -> list[Finding]:
    """Build the environment, play at most 25 steps, and return what is wrong with it.

    for finding in check_env(lambda: MyEnv()):
        print(finding.sentence)
    """
    try:
        return _examine(env)[0]
    except UserError as error:
        return [Finding(True, str(error))]
    except Exception as error:
        return [Finding(True, f"it {raised('__init__', error).what}.")]


def _examine(env: EnvLike) -> tuple[list[Finding], BaseException | None]:
    """Return the findings, errors first, and the cause of the last; raise if it cannot be built."""
    found: list[Finding] = []
    cause = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        envs = VectorEnv(env, [SEED], 1)
        # Below the library's own wrappers, so that faults are those of training.
        flat = envs.vector.envs[0].env  # type: ignore[union-attr]
        flat.env = checked = _Checked(flat.env)
        try:
            found.extend(_wrappers(checked.env))
            found.extend(_findings(envs, checked))
        except EnvError as error:
            found.append(Finding(True, f"it {error.what}."))
            cause = error.__cause__
        except UserError as error:
            found.append(Finding(True, str(error)))
        except (AssertionError, TypeError) as error:  # of the spaces
            found.append(Finding(True, f"Gymnasium: {error}"))
        finally:
            envs.close(terminate=True)
    said = [_GYMNASIUM.fullmatch(str(warning.message)) for warning in caught]
    found.extend(Finding(False, f"Gymnasium: {match[1].strip()}") for match in said if match)
    return sorted(dict.fromkeys(found), key=lambda finding: not finding.is_error), cause


class _Checked(gym.Wrapper[Any, Any, Any, Any]):
    """Applies Gymnasium's checker to every call; keeps the observation of the last reset."""

    obs: Any

    def reset(self, **options: Any) -> Any:
        result = env_reset_passive_checker(self.env, **options)
        self.obs = result[0]
        return result

    def step(self, action: Any) -> Any:
        return env_step_passive_checker(self.env, action)


def _wrappers(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    while isinstance(env, gym.Wrapper):
        if type(env).__name__ in WRAPPERS:
            yield WRAPPERS[type(env).__name__]
        env = env.env


def _findings(envs: VectorEnv, checked: _Checked) -> Iterator[Finding]:
    check_action_space(checked.action_space)
    check_observation_space(checked.observation_space)
    box = envs.task.action_space
    if np.max(box.high / 2 - box.low / 2) > 1e6:
        yield Finding(
            False,
            f"the bounds of the action box {box} are too wide to be useful: exploration covers "
            "all of it. Give the range in which actions matter.",
        )
    first = envs.reset([SEED])
    envs.task.flatten(checked.obs)  # raises for fractions in a space of integers
    if not np.array_equal(first, envs.reset([SEED])):
        yield Finding(False, f"two resets with the same seed differ: reset(seed={SEED}) must call "
                      "super().reset(seed=seed) and draw from self.np_random only. A run cannot be "
                      "repeated, nor two agents compared from the same starts.")  # fmt: skip
    yield from _episode(envs)


def _act(envs: VectorEnv, action: np.ndarray) -> np.ndarray:
    """Step once, with an action in [-1, 1]; return the next observation."""
    return envs.step(action.reshape(1, 1, -1)).next_obs


def _episode(envs: VectorEnv) -> Iterator[Finding]:
    """Play random actions until the episode ends, at most `NUM_STEPS`."""
    draw = np.random.default_rng(SEED)
    actions = draw.uniform(-1, 1, (NUM_STEPS, envs.spec.act_dim)).astype(np.float32)
    obs = envs.reset([SEED])
    for count, action in enumerate(actions):
        last = _act(envs, action)
        if envs.ended.all():
            yield from _end(envs, obs, last, actions[:count])
            return
        obs = envs.obs


def _end(
    envs: VectorEnv, before: np.ndarray, last: np.ndarray, actions: np.ndarray
) -> Iterator[Finding]:
    """Find an early reset: the episode's `last` observation is the first of the next one.

    A reset after all `actions` but the last leads to the observation that a wrapper which resets
    automatically returns.  `before` is the observation that the last step was taken from.
    """
    start = _next_start(envs, actions)
    if start is None or not np.array_equal(last, start) or np.array_equal(last, before):
        return
    if len(actions):
        earlier = _next_start(envs, actions[:-1])
        if earlier is None or np.array_equal(before, earlier):
            return  # every step does so: the observations are random draws
    varies = not np.array_equal(envs.reset([SEED]), envs.reset([SEED + 1]))
    yield Finding(
        # If all episodes start alike, or last one step, the two may be equal by chance.
        varies and len(actions) > 0,
        "the observation at the end of an episode is the first of the next: a wrapper, or "
        "step() itself, resets too early and drops the last one. Return it, and leave the "
        "reset to the caller.",
    )


def _next_start(envs: VectorEnv, actions: np.ndarray) -> np.ndarray | None:
    """Return the first observation after these actions and a reset; None if they end an episode."""
    envs.reset([SEED])
    for action in actions:
        _act(envs, action)
        if envs.ended.any():
            return None
    return envs.reset([None])
