"""One environment, checked and made ready for training."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from langevinrl.envs.factory import EnvFactory, GymFactory, as_factory, one_line, provider_of
from langevinrl.envs.flat import FlatWrapper
from langevinrl.envs.snapshot import SnapshotWrapper
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError
from langevinrl.types import Spec

# Every environment that was built and still lives, by the place of what its wrappers wrap.
_BUILT: weakref.WeakValueDictionary[int, gym.Env[Any, Any]] = weakref.WeakValueDictionary()


def build(factory: EnvFactory, name: str, bound: float = 1.0) -> SnapshotWrapper:
    """One environment, checked and made ready: flat observations, a bounded box of actions."""
    try:
        env = factory()
    except (ImportError, gym.error.Error) as error:
        raise UserError(f"cannot build {name!r}: {error}{_advice(name, error)}") from error
    except Exception as error:
        # What a package meets that expects another MuJoCo; words that its task does not know.
        provider = provider_of(name)
        if provider is not None:
            said = f"cannot build {name!r} with {provider.package} ({one_line(error)})"
            raise UserError(f"{said}: {provider.install}") from error
        if isinstance(factory, GymFactory) and isinstance(error, TypeError):
            raise UserError(f"cannot build {name!r}: {one_line(error)}") from error
        raise
    if not isinstance(env, gym.Env):
        raise UserError(f"{name!r} made {env!r}; expected a Gymnasium environment")
    _require_new(env, name)
    return SnapshotWrapper(FlatWrapper(env, name, bound))


def _require_new(env: gym.Env[Any, Any], name: str) -> None:
    """Refuses an object that already serves: one environment would be stepped for all lanes."""
    base = env.unwrapped
    if _BUILT.get(id(base)) is base:
        raise UserError(
            f"{name!r} hands out the same {type(base).__name__} twice, and every lane needs one "
            "of its own: make it inside the function, as in lambda: MyEnv(), not lambda: env"
        )
    _BUILT[id(base)] = base


def task_sizes(env: str, kwargs: Mapping[str, Any] | None = None) -> Spec:
    """A task's sizes, by building it once."""
    built = build(as_factory(env, kwargs), env)
    try:
        return task_of(built).spec
    finally:
        built.close()


def task_of(built: SnapshotWrapper) -> TaskSpaces:
    """The spaces of the environment itself, under the layers that `build` puts on it."""
    assert isinstance(built.env, FlatWrapper)
    return built.env.task


def _advice(name: str, error: Exception) -> str:
    """What to install, where that is what is wrong."""
    if "Pusher-v4" in name:
        return (
            "\nPusher-v4 needs mujoco below 3: pip install 'langevinrl[paper]' on Python 3.11, "
            "or use Pusher-v5"
        )
    missing = isinstance(error, ModuleNotFoundError | gym.error.DependencyNotInstalled)
    if missing and any(package in str(error).lower() for package in ("mujoco", "imageio")):
        return "\npip install 'langevinrl[mujoco]'"
    return ""
