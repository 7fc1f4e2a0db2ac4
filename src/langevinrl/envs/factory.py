"""Factories: every form in which a user names an environment, as a function that makes one."""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from langevinrl.errors import UserError

EnvFactory: TypeAlias = Callable[[], gym.Env[Any, Any]]
EnvLike: TypeAlias = str | EnvSpec | gym.Env[Any, Any] | EnvFactory
PASS_A_FUNCTION = "pass a function that makes one: Model(..., lambda: MyEnv())"


class Provider(NamedTuple):
    """A package that registers its tasks when it is imported."""

    pattern: str  # of its task ids
    modules: tuple[str, ...]  # imported in this order
    package: str
    extra: str  # the extra that pins compatible versions

    @property
    def install(self) -> str:
        return (
            f"pip install 'langevinrl[{self.extra}]' (in an environment of its own: it needs a "
            "newer MuJoCo than the extra `paper`)"
        )


PROVIDERS = (
    Provider("dm_control/", ("dm_control", "shimmy"), "dm_control and Shimmy", "dm-control"),
    Provider(
        "(Fetch|HandReach|HandManipulate|Adroit|AntMaze|PointMaze|FrankaKitchen)",
        ("gymnasium_robotics",),
        "gymnasium-robotics",
        "robotics",
    ),
)


@dataclass(frozen=True)
class GymFactory:
    """A named call of `gymnasium.make`."""

    what: str | EnvSpec
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.what if isinstance(self.what, str) else self.what.id

    def __call__(self, **changes: Any) -> gym.Env[Any, Any]:
        if isinstance(self.what, str):
            import_provider(self.what)  # again in each worker process
        return gym.make(self.what, **{**self.kwargs, **changes})


@dataclass(frozen=True)
class FunctionFactory:
    """A named call of a function with keyword arguments."""

    name: str  # module:function
    function: EnvFactory
    kwargs: Mapping[str, Any]

    def __call__(self, **changes: Any) -> gym.Env[Any, Any]:
        return self.function(**{**self.kwargs, **changes})


def name_of(env: EnvLike) -> str:
    """Return the name of an environment: its id, or `module:function`."""
    if isinstance(env, str):
        return env
    if isinstance(env, GymFactory | FunctionFactory):
        return env.name
    if isinstance(env, EnvSpec):
        return env.id
    if isinstance(env, gym.Env) and env.spec is not None:
        return env.spec.id
    kind = env if hasattr(env, "__qualname__") else type(env)  # a partial has no name
    return f"{kind.__module__}:{kind.__qualname__}"


def as_factory(env: EnvLike, kwargs: Mapping[str, Any] | None = None) -> EnvFactory:
    """Return a function that makes a new environment at each call.

    `env` is an id (`Hopper-v4`, `module:Id-v0`), `module:function`, an EnvSpec, an environment
    made by `gymnasium.make`, or already such a function.  `kwargs` are passed to it.
    """
    if isinstance(env, str):
        return resolve(env, kwargs)
    if isinstance(env, EnvSpec):
        return _from_spec(env, kwargs)
    if isinstance(env, gym.Env) and env.spec is not None:
        return _from_spec(env.spec, kwargs)
    if isinstance(env, gym.Env | gym.vector.VectorEnv):
        raise UserError(
            f"{type(env).__name__} is not an environment made by gymnasium.make, and training "
            f"needs several: {PASS_A_FUNCTION}"
        )
    if not callable(env):
        raise UserError(
            f"env is {env!r}; expected a Gymnasium id, an environment or a function that makes one"
        )
    return FunctionFactory(name_of(env), env, dict(kwargs)) if kwargs else env


def resolve(env: str, kwargs: Mapping[str, Any] | None = None) -> EnvFactory:
    """Return the factory of `Hopper-v4`, `module:Id-v0` or `module:function`."""
    module_name, _, name = env.rpartition(":")
    if module_name:
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise UserError(
                f"environment {env!r}: cannot import {module_name!r} ({error})"
            ) from error
        factory: EnvFactory | None = getattr(module, name, None)
        if callable(factory):
            return FunctionFactory(env, factory, dict(kwargs)) if kwargs else factory
    import_provider(name)
    if name not in gym.registry:
        near = difflib.get_close_matches(name, gym.registry, n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UserError(
            f"unknown environment {env!r}{hint}. "
            "Expected a Gymnasium id, module:Id-v0 or module:function."
        )
    return GymFactory(env, dict(kwargs or {}))


def provider_of(name: str) -> Provider | None:
    """Return the package that provides a task, if it is one of `PROVIDERS`."""
    task = name.rpartition(":")[2]
    return next((one for one in PROVIDERS if re.match(one.pattern, task)), None)


def import_provider(name: str) -> None:
    """Import the package that registers a task, if there is one."""
    provider = provider_of(name)
    if provider is None or name.rpartition(":")[2] in gym.registry:
        return
    try:
        for module in provider.modules:
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"{name!r} comes with {provider.package} ({error}): {provider.install}"
        ) from error
    except Exception as error:  # any error: the package may expect another version of MuJoCo
        raise UserError(
            f"{name!r}: {provider.package} does not load here ({one_line(error)}): "
            f"{provider.install}"
        ) from error


def one_line(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _from_spec(spec: EnvSpec, kwargs: Mapping[str, Any] | None) -> GymFactory:
    """Return the factory of an EnvSpec; raise if one of its wrappers cannot be made again."""
    for wrapper in spec.additional_wrappers:
        try:
            load_env_creator(wrapper.entry_point)
            known = wrapper.kwargs is not None
        except (ImportError, AttributeError):
            known = False
        if not known:
            raise UserError(
                f"{spec.id} is wrapped in {wrapper.name}, which does not record its arguments and "
                f"cannot be made again: {PASS_A_FUNCTION}"
            )
    given = dict(kwargs or {})
    if spec.kwargs.get("render_mode") == "human":
        given.setdefault("render_mode", None)  # otherwise every environment opens a window
    return GymFactory(spec, given)


class EnvSource(NamedTuple):
    """The environment of a run: its factory, and the name and arguments that its config stores."""

    factory: EnvFactory | None  # None: made by name
    name: str
    kwargs: dict[str, Any]


def identify(env: EnvLike, kwargs: Mapping[str, Any] | None = None) -> EnvSource:
    """Return the source of an environment in any form.

    The name and arguments make the same environment again.  Where that is impossible (a wrapped
    instance, a lambda), the name resolves to nothing, and loading asks for `env=`.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise UserError(f"env_kwargs is {kwargs!r}; expected a dict")
    given = dict(kwargs or {})
    if isinstance(env, str):
        return EnvSource(None, env, given)
    factory = as_factory(env, given)
    if isinstance(factory, GymFactory) and isinstance(factory.what, EnvSpec):
        return _identify_spec(factory, factory.what)
    if isinstance(env, functools.partial) and not env.args and _is_json(env.keywords):
        return EnvSource(factory, name_of(env.func), {**env.keywords, **given})
    return EnvSource(factory, name_of(env), given)


def _identify_spec(factory: GymFactory, spec: EnvSpec) -> EnvSource:
    """Use the id and arguments if the registry makes the same environment from them."""
    registered = gym.registry.get(spec.id)
    asked = {**spec.kwargs, **factory.kwargs}
    known = dict(registered.kwargs) if registered else {}
    own = {k: v for k, v in asked.items() if k != "render_mode" and known.get(k, ...) != v}
    same = (
        registered is not None
        and not spec.additional_wrappers
        and spec.max_episode_steps == registered.max_episode_steps
        and _is_json(own)
    )
    return EnvSource(factory, spec.id, own) if same else EnvSource(factory, f"{spec.id}+own", {})


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
