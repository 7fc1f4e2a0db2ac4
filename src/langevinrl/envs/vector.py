"""Gymnasium environments in lock-step: seeding, action boxes, true last observations, snapshots."""

from __future__ import annotations

import difflib
import importlib
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from langevinrl.envs.snapshot import EnvState, SnapshotWrapper
from langevinrl.errors import UserError
from langevinrl.types import Spec, Transition

EnvFactory: TypeAlias = Callable[[], gym.Env[Any, Any]]


def name_of(env: str | EnvFactory) -> str:
    """What to call an environment: `module:function` if it is not already a name."""
    if isinstance(env, str):
        return env
    kind = env if hasattr(env, "__qualname__") else type(env)  # a partial, say, has no name itself
    return f"{kind.__module__}:{kind.__qualname__}"


def resolve(env: str) -> EnvFactory:
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
            return factory
    if name not in gym.registry:
        near = difflib.get_close_matches(name, gym.registry, n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UserError(
            f"unknown environment {env!r}{hint}. "
            "Expected a Gymnasium id, module:Id-v0 or module:function."
        )
    return lambda: _make(name)


def _make(name: str) -> gym.Env[Any, Any]:
    with warnings.catch_warnings():
        # The paper's tasks are the v4 ones; that they are "out of date" is known.
        warnings.filterwarnings("ignore", message=".*out of date", category=DeprecationWarning)
        return gym.make(name)


def build(factory: EnvFactory, name: str) -> SnapshotWrapper:
    """One environment, checked and made ready: flat observations, a bounded box of actions."""
    try:
        env = factory()
    except (ImportError, gym.error.Error) as error:
        raise UserError(f"cannot build {name!r}: {error}{_advice(name, error)}") from error
    if not isinstance(env, gym.Env):
        raise UserError(f"{name!r} made {env!r}; expected a Gymnasium environment")
    box = env.action_space
    if not isinstance(box, gym.spaces.Box) or not np.all(np.isfinite([box.low, box.high])):
        raise UserError(f"{name!r} has action space {box}; expected a Box with finite bounds")
    if (
        not isinstance(env.observation_space, gym.spaces.Box)
        or len(env.observation_space.shape) != 1
    ):
        env = gym.wrappers.FlattenObservation(env)
    if len(box.shape) != 1:
        raise UserError(f"{name!r} has actions of shape {box.shape}; expected one axis")
    return SnapshotWrapper(env)


def task_sizes(env: str) -> Spec:
    """A task's sizes, by building it once."""
    built = build(resolve(env), env)
    try:
        observations, actions = built.observation_space.shape, built.action_space.shape
        assert observations is not None and actions is not None
        return Spec(observations[0], actions[0])
    finally:
        built.close()


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
        env: str | EnvFactory,
        seeds: Sequence[int],
        num_envs: int,
        act_bound: float = 1.0,
        asynchronous: bool = False,
    ) -> None:
        factory = resolve(env) if isinstance(env, str) else env
        name = name_of(env)
        owner, num_all = os.getpid(), len(seeds) * num_envs

        def make() -> SnapshotWrapper:
            if os.getpid() != owner:
                # Ctrl-C reaches the whole group; it is for the loop, which saves before it stops.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            return build(factory, name)

        mode = AutoresetMode.SAME_STEP
        self.vector: SyncVectorEnv | AsyncVectorEnv
        if asynchronous:
            # Forked from a clean process: a fork of this one, where JAX has threads, may hang.
            multiprocessing.set_forkserver_preload([__name__])
            makers = [make] * num_all
            self.vector = AsyncVectorEnv(makers, context="forkserver", autoreset_mode=mode)
        else:
            self.vector = SyncVectorEnv([make] * num_all, autoreset_mode=mode)
        self.shape = (len(seeds), num_envs)
        self.seeds = [env_seed(seed, i) for seed in seeds for i in range(num_envs)]
        box = self.vector.single_action_space
        assert isinstance(box, gym.spaces.Box)
        assert self.vector.single_observation_space.shape is not None
        (obs_dim,), (act_dim,) = self.vector.single_observation_space.shape, box.shape
        self.spec = Spec(obs_dim, act_dim, act_bound)
        self.centre = (box.high + box.low) / 2
        self.stretch = (box.high - box.low) / (2 * act_bound)
        self.obs = np.zeros((*self.shape, obs_dim), np.float32)
        self.ended = np.zeros(self.shape, bool)

    def reset(self, seeds: Sequence[int] | None = None) -> np.ndarray:
        """Start every environment afresh, from its own seed or those given."""
        obs, _ = self.vector.reset(seed=list(seeds or self.seeds))
        self.obs = self._shaped(obs)
        return self.obs

    def step(self, action: np.ndarray) -> Transition:
        """Step every environment once with `action` (S, E, A)."""
        sent = self.centre + self.stretch * action.reshape(-1, self.spec.act_dim)
        obs, reward, terminated, truncated, info = self.vector.step(sent.astype(self.centre.dtype))
        ended = terminated | truncated
        last = np.array(obs, np.float32)
        for i in np.flatnonzero(ended):
            last[i] = info["final_obs"][i]
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
