"""From what a user calls an environment to a function that makes one, and what fails on the way."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from langevinrl.errors import UserError

EnvFactory: TypeAlias = Callable[[], gym.Env[Any, Any]]
EnvLike: TypeAlias = (
    str | EnvSpec | gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any] | EnvFactory
)
PASS_A_FUNCTION = "pass a function that makes one: Model(..., lambda: MyEnv())"


class Provider(NamedTuple):
    """A package whose tasks are registered when it is imported."""

    pattern: str  # of its tasks' ids
    modules: tuple[str, ...]  # imported in this order
    package: str
    extra: str  # of ours that pins versions which work together

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
    """Makes an environment as `gymnasium.make` does; unlike a lambda it has a name."""

    what: str | EnvSpec
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Callable[[Any], Any], ...] = ()  # put around it in this order

    @property
    def name(self) -> str:
        return self.what if isinstance(self.what, str) else self.what.id

    def __call__(self, **changes: Any) -> gym.Env[Any, Any]:
        if isinstance(self.what, str):
            import_provider(self.what)  # a process of an environment's own starts without it
        with warnings.catch_warnings():
            # The paper's tasks are the v4 ones; that they are "out of date" is known.
            warnings.filterwarnings("ignore", message=".*out of date", category=DeprecationWarning)
            env: gym.Env[Any, Any] = gym.make(self.what, **{**self.kwargs, **changes})
        for wrapper in self.wrappers:
            env = wrapper(env)
        return env


@dataclass(frozen=True)
class FunctionFactory:
    """Calls a function with arguments; unlike a partial it has a name."""

    name: str  # module:function
    function: EnvFactory
    kwargs: Mapping[str, Any]

    def __call__(self, **changes: Any) -> gym.Env[Any, Any]:
        return self.function(**{**self.kwargs, **changes})


def name_of(env: EnvLike) -> str:
    """What to call an environment: `module:function` if it is not already a name."""
    if isinstance(env, str):
        return env
    if isinstance(env, GymFactory | FunctionFactory):
        return env.name
    if isinstance(env, EnvSpec):
        return env.id
    if isinstance(env, gym.Env | gym.vector.VectorEnv) and env.spec is not None:
        return env.spec.id
    kind = env if hasattr(env, "__qualname__") else type(env)  # a partial, say, has no name itself
    return f"{kind.__module__}:{kind.__qualname__}"


def as_factory(env: EnvLike, kwargs: Mapping[str, Any] | None = None) -> EnvFactory:
    """A function that makes the environment anew at each call.

    `env` is an id (`Hopper-v4`, `module:Id-v0`), `module:function`, an EnvSpec, an environment or
    vector environment that `gymnasium.make` or `make_vec` made, or already such a function.
    `kwargs` go to whatever makes it.
    """
    if isinstance(env, str):
        return resolve(env, kwargs)
    if isinstance(env, EnvSpec):
        return _from_spec(env, kwargs)
    if isinstance(env, gym.Env):
        if env.spec is None:
            raise UserError(
                f"{type(env).__name__} is one environment, not made by gymnasium.make, and "
                f"training needs several: {PASS_A_FUNCTION}"
            )
        return _from_spec(env.spec, kwargs)
    if isinstance(env, gym.vector.VectorEnv):
        return _from_vector(env, kwargs)
    if not callable(env):
        raise UserError(
            f"env is {env!r}; expected a Gymnasium id, an environment or a function that makes one"
        )
    return FunctionFactory(name_of(env), env, dict(kwargs)) if kwargs else env


def resolve(env: str, kwargs: Mapping[str, Any] | None = None) -> EnvFactory:
    """A factory for `Hopper-v4`, for `module:Id-v0` (imported first) or for `module:function`."""
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
    """Whose task this is, if it is one of those that come in packages of their own."""
    task = name.rpartition(":")[2]
    return next((one for one in PROVIDERS if re.match(one.pattern, task)), None)


def import_provider(name: str) -> None:
    """Registers a package's tasks if the name is one of them."""
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
    except Exception as error:  # whatever a package meets when MuJoCo is not the one it expects
        raise UserError(
            f"{name!r}: {provider.package} does not load here ({one_line(error)}): "
            f"{provider.install}"
        ) from error


def one_line(error: Exception) -> str:
    """What an error of another package says, without the pages that may follow."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__


def _from_spec(spec: EnvSpec, kwargs: Mapping[str, Any] | None) -> GymFactory:
    """From what an environment says of its own making."""
    for wrapper in spec.additional_wrappers:
        try:
            load_env_creator(wrapper.entry_point)
        except (ImportError, AttributeError):
            found = False
        else:
            found = wrapper.kwargs is not None
        if not found:
            raise UserError(
                f"{spec.id} is wrapped in {wrapper.name}, which does not say how it was made, so "
                f"that no second one can be: {PASS_A_FUNCTION}"
            )
    given = dict(kwargs or {})
    if spec.kwargs.get("render_mode") == "human":
        given.setdefault("render_mode", None)  # no window for each of many
    return GymFactory(spec, given)


# What `make_vec` notes beside the arguments of the environment itself.
_OF_VECTORS = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")


def _from_vector(
    env: gym.vector.VectorEnv[Any, Any, Any], kwargs: Mapping[str, Any] | None
) -> GymFactory:
    """One environment of those that `make_vec` put side by side."""
    spec = env.unwrapped.spec
    if spec is None:
        raise UserError(
            f"{type(env).__name__} was not made by gymnasium.make_vec, so that what it holds "
            f"cannot be made again; {PASS_A_FUNCTION}"
        )
    if env is not env.unwrapped:
        raise UserError(
            f"the wrapper {type(env).__name__} around many {spec.id} would be lost, as each is "
            f"made anew: wrap one, and {PASS_A_FUNCTION}"
        )
    own = {k: v for k, v in spec.kwargs.items() if k not in _OF_VECTORS}
    made = _from_spec(dataclasses.replace(spec, kwargs=own), kwargs)
    return dataclasses.replace(made, wrappers=tuple(spec.kwargs.get("wrappers", ())))
