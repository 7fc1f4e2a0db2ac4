"""Construction of one environment with the library's wrappers."""

from __future__ import annotations

import contextlib
import sys
import warnings
import weakref
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from langevinrl.envs.factory import EnvFactory, GymFactory, as_factory, one_line, provider_of
from langevinrl.envs.flat import FlatWrapper
from langevinrl.envs.snapshot import SnapshotWrapper
from langevinrl.errors import UserError
from langevinrl.types import Spec

# Every environment that was built and is still alive, by the id of its unwrapped object.
_BUILT: weakref.WeakValueDictionary[int, gym.Env[Any, Any]] = weakref.WeakValueDictionary()


def build(factory: EnvFactory, name: str, bound: float = 1.0) -> SnapshotWrapper:
    """Make an environment with flat observations, a bounded action box and a state to save."""
    try:
        with warnings.catch_warnings():
            # The paper uses the v4 tasks on purpose.
            warnings.filterwarnings("ignore", ".*out of date", DeprecationWarning)
            env = factory()
    except SystemExit as error:
        raise UserError(f"cannot build {name!r}: it called sys.exit({error.code!r})") from error
    except (ImportError, gym.error.Error) as error:
        raise UserError(f"cannot build {name!r}: {error}{_advice(name, error)}") from error
    except Exception as error:
        # The package may expect another MuJoCo, or the task may not know an argument.
        provider = provider_of(name)
        if provider is not None:
            failure = f"cannot build {name!r} with {provider.package} ({one_line(error)})"
            raise UserError(f"{failure}: {provider.install}") from error
        if isinstance(factory, GymFactory) and isinstance(error, TypeError):
            raise UserError(f"cannot build {name!r}: {one_line(error)}") from error
        raise
    if not isinstance(env, gym.Env):
        raise UserError(f"{name!r} made {env!r}; expected a Gymnasium environment")
    _require_new(env, name)
    _redirect_mujoco_warnings()
    return SnapshotWrapper(FlatWrapper(env, name, bound))


def _require_new(env: gym.Env[Any, Any], name: str) -> None:
    """Raise if a factory returns an environment that is already in use."""
    base = env.unwrapped
    if _BUILT.get(id(base)) is base:
        raise UserError(
            f"{name!r} returns the same {type(base).__name__} twice, and each environment "
            "must be a new one: make it inside the function, as in lambda: MyEnv(), not lambda: env"
        )
    _BUILT[id(base)] = base


def _redirect_mujoco_warnings() -> None:
    """Turn MuJoCo's warnings into Python's; by default it writes MUJOCO_LOG.TXT to the folder."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is not None and mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_warn_of_mujoco)


def _warn_of_mujoco(text: str) -> None:
    """Warn once for each kind, such as "Nan, Inf or huge value in QACC at DOF 0"."""
    with contextlib.suppress(Warning):  # an error must not pass through MuJoCo's C code
        warnings.warn(f"MuJoCo: {text.partition(' Time =')[0]}", stacklevel=2)


def task_sizes(env: str, kwargs: Mapping[str, Any] | None = None) -> Spec:
    """Build an environment once and return its observation and action sizes."""
    built = build(as_factory(env, kwargs), env)
    try:
        spec: Spec = built.get_wrapper_attr("task").spec
        return spec
    finally:
        built.close()


def _advice(name: str, error: Exception) -> str:
    """Return what to install, if a missing package is the problem."""
    if "Pusher-v4" in name:
        return (
            "\nPusher-v4 needs mujoco below 3: pip install 'langevinrl[paper]' on Python 3.11, "
            "or use Pusher-v5"
        )
    missing = isinstance(error, ModuleNotFoundError | gym.error.DependencyNotInstalled)
    if missing and any(package in str(error).lower() for package in ("mujoco", "imageio")):
        return "\npip install 'langevinrl[mujoco]'"
    return ""
