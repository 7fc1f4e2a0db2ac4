"""A look at an environment before training: a few resets and steps, told in sentences.

What would spoil a run is an error; what may be meant is a doubt.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from langevinrl.envs.factory import EnvLike, as_factory, name_of
from langevinrl.envs.flat import FlatWrapper
from langevinrl.envs.spaces import Composed, children
from langevinrl.envs.vector import build
from langevinrl.errors import UserError

NUM_STEPS = 25  # at most: a look, not a test drive
SEED = 1
# Where a wrapper that starts the next episode by itself puts the last observation of this one.
FINAL_KEYS = ("final_obs", "final_observation", "terminal_observation")
NORMALISERS = {
    "NormalizeObservation": "Use the agent's obs_norm, or fixed numbers: "
    "langevinrl.envs.standardise measures them once and gives every environment the same.",
    "NormalizeReward": "Leave it out and give the agent reward_norm or reward_scale, saved with "
    "the run.",
}


class Finding(NamedTuple):
    """One thing found, as a sentence."""

    is_error: bool  # else a doubt
    sentence: str


class Step(NamedTuple):
    """The last step of an episode."""

    before: Any  # the observation it was taken from
    obs: Any  # the one it returned
    info: dict[str, Any]


def require_sound(env: EnvLike) -> None:
    """Raises a UserError that lists the errors; warns of each doubt, once."""
    findings, name = check_env(env), name_of(env)
    errors = [finding.sentence for finding in findings if finding.is_error]
    if errors:
        raise UserError(f"{name!r} cannot be trained on: " + " ".join(errors))
    for finding in findings:
        warnings.warn(f"{name}: {finding.sentence}", stacklevel=2)


def check_env(env: EnvLike) -> list[Finding]:
    """Build the environment, play a little, and say what is wrong or doubtful with it.

    for finding in check_env(lambda: MyEnv()):
        print(finding.sentence)
    """
    factory, name = as_factory(env), name_of(env)
    with warnings.catch_warnings():
        # Gymnasium's own checks speak of the same things, and again at every step of training.
        warnings.simplefilter("ignore")
        built = build(factory, name)
        try:
            assert isinstance(built.env, FlatWrapper)
            return _one_of_each(_findings(built.env.env))
        finally:
            built.close()


def _one_of_each(findings: Iterator[Finding]) -> list[Finding]:
    """Without repeats: place and numbers differ from step to step, the fault does not."""
    first: dict[str, Finding] = {}
    for finding in findings:
        fault = finding.sentence.split(":")[0].replace("reset()", "step()")
        first.setdefault(fault, finding)
    return list(first.values())


def _findings(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    yield from _wrappers(env)
    yield from _action_box(env)
    started = env.reset(seed=SEED)
    if not isinstance(started, tuple) or len(started) != 2:
        yield Finding(True, "reset() returns one thing; Gymnasium's returns two, obs and info.")
        return
    first = copy.deepcopy(started[0])
    wrong = list(_observation(env.observation_space, first, "reset()"))
    yield from wrong
    if any(finding.is_error for finding in wrong):
        return
    if not _same(first, env.reset(seed=SEED)[0]):
        yield Finding(False, f"two resets with the same seed differ: reset(seed={SEED}) must call "
                      "super().reset(seed=seed) and draw from self.np_random only. A run cannot be "
                      "repeated, nor two agents compared from the same starts.")  # fmt: skip
    else:
        yield from _box_edges(env)
    yield from _episode(env)


def _wrappers(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    """Wrappers known to do harm here."""
    while isinstance(env, gym.Wrapper):
        kind = type(env).__name__
        if kind in NORMALISERS:
            yield Finding(
                False,
                f"{kind} keeps statistics of its own in each environment and starts afresh in "
                f"every evaluation. {NORMALISERS[kind]}",
            )
        if isinstance(env, gym.wrappers.Autoreset):
            yield Finding(True, "the wrapper Autoreset restarts episodes, which is done here. "
                          "Take it off.")  # fmt: skip
        env = env.env


def _action_box(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    box = env.action_space
    assert isinstance(box, spaces.Box)  # `build` has seen to it
    if np.any(box.low == box.high):
        yield Finding(False, f"some actions of {box} have no room: their bounds are the same.")
    if np.max(box.high / 2 - box.low / 2) > 1e6:
        yield Finding(
            False,
            f"the action box {box} is bounded in name only: exploration spreads over all of it. "
            "Give the range in which actions matter.",
        )


def _observation(space: spaces.Space[Any], obs: Any, where: str) -> Iterator[Finding]:
    """What is wrong with one observation, part by part."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        keys, has = [key for key, _ in children(space)], _keys(space, obs)
        if has is None or set(has) != set(keys):
            found = f"the parts {has}" if has is not None else type(obs).__name__
            yield Finding(True, f"{where} gives an observation of {found}; its space has {keys}.")
            return
        for key, part in children(space):
            yield from _observation(part, obs[key], f"{where}, part {key!r},")
        return
    yield from _array(space, np.asarray(obs), where)


def _keys(space: Composed, obs: Any) -> list[Any] | None:
    """By what the parts of an observation are found; None if it is of another kind altogether."""
    if isinstance(space, spaces.Dict):
        return list(obs) if isinstance(obs, Mapping) else None
    return list(range(len(obs))) if isinstance(obs, tuple | list) else None


def _array(space: spaces.Space[Any], value: np.ndarray, where: str) -> Iterator[Finding]:
    """What is wrong with a part that is an array."""
    if value.shape != space.shape:
        yield Finding(
            True, f"{where} gives an observation of shape {value.shape}; its space says {space}."
        )
    elif not (np.issubdtype(value.dtype, np.number) or value.dtype == bool):
        yield Finding(True, f"{where} gives an observation of type {value.dtype}, not numbers.")
    elif not np.isfinite(value).all():
        yield Finding(True, f"{where} gives an observation that is not finite: {_short(value)}.")
    elif np.issubdtype(value.dtype, np.floating) and np.issubdtype(space.dtype, np.integer):
        yield Finding(
            True,
            f"{where} gives {value.dtype} observations, but {space} is of integers: they would be "
            "cut off. Declare a float32 space.",
        )
    else:
        if not np.can_cast(value.dtype, space.dtype or value.dtype):
            yield Finding(
                False,
                f"{where} gives {value.dtype} observations, its space says {space.dtype}; they "
                "are converted.",
            )
        if not space.contains(value.astype(space.dtype)):
            yield Finding(
                False,
                f"{where} gives an observation outside of its space {space}: {_short(value)}. "
                "Training does not use these bounds, but they are wrong.",
            )


def _box_edges(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    """Whether the far part of the action box does anything: one step each from one start."""
    box = env.action_space
    assert isinstance(box, spaces.Box)
    middle, half = box.high / 2 + box.low / 2, box.high / 2 - box.low / 2
    outcomes = []
    for share in (1.0, 0.8, 0.0):
        env.reset(seed=SEED)
        result = env.step((middle + share * half).astype(box.dtype))
        outcomes.append(copy.deepcopy(result[:2]))  # obs and reward
    edge, inside, still = outcomes
    if _same(edge, inside) and not _same(inside, still):
        yield Finding(
            False,
            f"actions at the edge of {box} do just what those a fifth of the way in do: the "
            "environment seems to clip to a smaller box than it declares. Declare the one it uses.",
        )


def _episode(env: gym.Env[Any, Any]) -> Iterator[Finding]:
    """Random actions until an episode ends, or for a while."""
    box = env.action_space
    assert isinstance(box, spaces.Box)
    draw = np.random.default_rng(SEED)
    actions = (box.low + draw.random((NUM_STEPS, *box.shape)) * (box.high - box.low)).astype(
        box.dtype
    )
    obs = copy.deepcopy(env.reset(seed=SEED)[0])
    for count, action in enumerate(actions):
        result = env.step(action)
        if not isinstance(result, tuple) or len(result) != 5:
            yield Finding(
                True,
                f"step() returns {len(result)} values; Gymnasium's returns five: obs, reward, "
                "terminated, truncated, info.",
            )
            return
        after, reward, terminated, truncated, info = result
        found = [*_observation(env.observation_space, after, "step()"), *_reward(reward)]
        yield from found
        if any(finding.is_error for finding in found):
            return
        if terminated or truncated:
            yield from _end(env, Step(obs, copy.deepcopy(after), info), actions[:count])
            return
        obs = copy.deepcopy(after)


def _reward(reward: Any) -> Iterator[Finding]:
    try:
        value = np.asarray(reward, float)
    except (TypeError, ValueError):
        yield Finding(True, f"step() pays {reward!r}, which is not a number.")
        return
    if value.size != 1:
        yield Finding(
            True,
            f"step() pays a reward of shape {value.shape}; expected one number. Sum or weigh its "
            "parts in the environment.",
        )
    elif not np.isfinite(value).all():
        yield Finding(True, f"step() pays a reward of {reward}; expected a finite number.")


def _end(env: gym.Env[Any, Any], last: Step, actions: np.ndarray) -> Iterator[Finding]:
    """Whether what came with the end of an episode is its last observation, or the next's first.

    `actions` are those before the last: played again, and followed by a reset, they lead to the
    observation that a wrapper returns which resets by itself.
    """
    lost = [key for key in FINAL_KEYS if key in last.info]
    if lost:
        yield Finding(
            True,
            f"the end of an episode comes with info[{lost[0]!r}]: a wrapper starts the next one by "
            "itself, and its first observation stands for the last of this one. Take it off.",
        )
        return
    if not _same(last.obs, _started_after(env, actions)) or _same(last.obs, last.before):
        return
    if len(actions) and _same(last.before, _started_after(env, actions[:-1])):
        return  # so does every step: its observations are draws, whatever was done
    varies = not _same(copy.deepcopy(env.reset(seed=SEED)[0]), env.reset(seed=SEED + 1)[0])
    yield Finding(
        # Where all episodes start alike, or last one step, one may truly end as another begins.
        varies and len(actions) > 0,
        "the observation at the end of an episode is the first of the next: a wrapper, or "
        "step() itself, resets too early and drops the last one. Return it, and leave the "
        "reset to the caller.",
    )


def _started_after(env: gym.Env[Any, Any], actions: np.ndarray) -> Any:
    """The first observation of the episode that follows on these actions."""
    env.reset(seed=SEED)
    for action in actions:
        env.step(action)
    return copy.deepcopy(env.reset()[0])


def _same(left: Any, right: Any) -> bool:
    """Whether two observations, or outcomes of a step, are equal in every number."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(np.array_equal(left, right))


def _short(value: np.ndarray) -> str:
    """An array as a few characters."""
    return np.array2string(value, precision=3, threshold=8, edgeitems=2).replace("\n", "")
