"""Gymnasium environments in lock-step: seeding, action boxes, true last observations, snapshots."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from langevinrl.envs.factory import (
    EnvFactory,
    EnvLike,
    GymFactory,
    as_factory,
    name_of,
    one_line,
    provider_of,
    resolve,
)
from langevinrl.envs.flat import FlatWrapper
from langevinrl.envs.snapshot import EnvState, SnapshotWrapper
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.workers import Workers, leave_signals_to_the_loop
from langevinrl.errors import UserError
from langevinrl.types import Spec, Transition

__all__ = [
    "EnvFactory", "EnvLike", "VectorEnv", "as_factory", "build", "env_seed", "episode_seed",
    "name_of", "resolve", "task_sizes",
]  # fmt: skip

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


class VectorEnv:
    """`num_envs` environments for each of S seeds, stepped together; each has a seed of its own.

    An ended episode restarts within the step: `obs` is then the fresh observation, while the
    transition keeps the true last one.  Actions arrive in [-act_bound, act_bound] and are
    stretched affinely to the task's box.
    """

    def __init__(
        self,
        env: EnvLike,
        seeds: Sequence[int],
        num_envs: int,
        act_bound: float = 1.0,
        asynchronous: bool = False,
    ) -> None:
        factory, name = as_factory(env), name_of(env)
        self.name = name
        owner, num_all = os.getpid(), len(seeds) * num_envs
        tasks: list[TaskSpaces] = []  # one for every environment built in this process

        def make() -> SnapshotWrapper:
            if os.getpid() != owner:
                leave_signals_to_the_loop()
            built = build(factory, name, act_bound)
            tasks.append(task_of(built))
            return built

        self.vector: SyncVectorEnv | Workers
        makers = [make] * num_all
        if asynchronous:
            self.vector = Workers(makers)
        else:
            self.vector = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self.shape = (len(seeds), num_envs)
        self.seeds = [env_seed(seed, i) for seed in seeds for i in range(num_envs)]
        self.task = tasks[0]  # the environment's own spaces
        self.spec = self.task.spec
        self.obs = np.zeros((*self.shape, self.spec.obs_dim), np.float32)
        self.ended = np.zeros(self.shape, bool)

    def reset(self, seeds: Sequence[int] | None = None) -> np.ndarray:
        """Start every environment afresh, from its own seed or those given."""
        obs, _ = self.vector.reset(seed=list(seeds or self.seeds))
        self.obs = self._shaped(obs)
        return self.obs

    def step(self, action: np.ndarray) -> Transition:
        """Step every environment once with `action` (S, E, A)."""
        sent = self.task.stretch(action.reshape(-1, self.spec.act_dim))
        obs, reward, terminated, truncated, info = self.vector.step(sent)
        ended = terminated | truncated
        last = np.array(obs, np.float32)
        for i in np.flatnonzero(ended):
            last[i] = info["final_obs"][i]
        self._require_finite(reward, last)
        self.ended = ended.reshape(self.shape)
        transition = Transition(
            obs=self.obs,
            action=action,
            reward=reward.astype(np.float32).reshape(self.shape),
            bootstrap=1 - terminated.astype(np.float32).reshape(self.shape),
            next_obs=self._shaped(last),
        )
        self.obs = self._shaped(obs)
        return transition

    def _require_finite(self, reward: np.ndarray, last: np.ndarray) -> None:
        """One NaN in replay would be in every weight soon after; the last checkpoint is sound."""
        if np.isfinite(reward).all() and np.isfinite(last).all():
            return
        fine = np.isfinite(reward) & np.isfinite(last).all(axis=1)
        lane = int(np.flatnonzero(~fine)[0])
        raise UserError(
            f"{self.name!r}: a step of environment {lane} gave a reward of {reward[lane]} and "
            f"{np.count_nonzero(~np.isfinite(last[lane]))} observed numbers that are not finite"
        )

    def _shaped(self, obs: np.ndarray) -> np.ndarray:
        return np.array(obs, np.float32).reshape(*self.shape, -1)

    def arrays(self) -> dict[str, np.ndarray]:
        """The observations and every environment's arrays, for a checkpoint."""
        named = {"obs": self.obs}
        for i, state in enumerate(self._env_states()):
            named |= {f"{i}/{name}": a for name, a in (state.arrays if state else {}).items()}
        return named

    def metadata(self) -> list[dict[str, Any] | None]:
        """What JSON can hold of every environment's state; None for one that cannot give it."""
        return [state.metadata if state else None for state in self._env_states()]

    def restore(
        self, arrays: dict[str, np.ndarray], metadata: list[dict[str, Any] | None], restart: int
    ) -> bool:
        """Put saved environments back; if any cannot be, restart all with seeds from `restart`.

        Says whether they were put back.
        """
        self.reset([env_seed(seed, restart) for seed in self.seeds])
        if any(one is None for one in metadata):
            return False
        states = [EnvState(_part(arrays, f"{i}/"), one or {}) for i, one in enumerate(metadata)]
        self.vector.set_attr("env_state", states)
        self.obs = arrays["obs"]
        return True

    def _env_states(self) -> list[EnvState | None]:
        return list(self.vector.get_attr("env_state"))

    def close(self) -> None:
        self.vector.close()


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def env_seed(seed: int, index: int) -> int:
    """A seed for one environment, far from its neighbours'."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def episode_seed(seed: int, episode: int) -> int:
    """A seed for the start of an evaluation episode; never one that training starts from."""
    return int(np.random.SeedSequence([seed, episode, 0xE7A1]).generate_state(1)[0])
