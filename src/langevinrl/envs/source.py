"""The environment of a run: what a user hands over, and what its configuration keeps of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from langevinrl.envs.factory import EnvFactory, EnvLike, GymFactory, as_factory, name_of
from langevinrl.errors import UserError


class EnvSource(NamedTuple):
    """How to make an environment, and the name and arguments a configuration keeps of it."""

    factory: EnvFactory | None  # None: by its name
    name: str
    kwargs: dict[str, Any]


def identify(env: EnvLike, kwargs: Mapping[str, Any] | None = None) -> EnvSource:
    """An id, a factory, an environment, a specification or a vector environment, told apart.

    What the configuration keeps makes the same environment again.  Where that cannot be (a wrapped
    instance, a lambda), the name is one that nothing answers to, and loading asks for `env=`.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UserError(f"env_kwargs is {kwargs!r}; expected a dict")
    given = dict(kwargs or {})
    if isinstance(env, str):
        return EnvSource(None, env, given)
    factory = as_factory(env, given)
    if isinstance(factory, GymFactory) and not isinstance(factory.what, str):
        return _from_spec(factory)
    if isinstance(env, functools.partial) and not env.args and _is_json(env.keywords):
        return EnvSource(factory, name_of(env.func), {**env.keywords, **given})
    return EnvSource(factory, name_of(env), given)


def _from_spec(factory: GymFactory) -> EnvSource:
    """By its id and arguments if the registry makes the same from them."""
    spec = factory.what
    assert not isinstance(spec, str)
    registered = gym.registry.get(spec.id)
    asked = {**spec.kwargs, **factory.kwargs}
    known = dict(registered.kwargs) if registered else {}
    own = {k: v for k, v in asked.items() if k != "render_mode" and known.get(k, ...) != v}
    plain = (
        registered is not None
        and not factory.wrappers
        and not spec.additional_wrappers
        and spec.max_episode_steps == registered.max_episode_steps
        and _is_json(own)
    )
    return EnvSource(factory, spec.id, own) if plain else EnvSource(factory, f"{spec.id}+own", {})


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
