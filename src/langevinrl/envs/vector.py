"""Gymnasium environments in lock-step: seeding, action boxes, true last observations, snapshots."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.envs.build import build, task_sizes
from langevinrl.envs.factory import EnvFactory, EnvLike, as_factory, name_of, resolve
from langevinrl.envs.faults import EnvError, Fault, OnError, Remote
from langevinrl.envs.serial import Outcome, SerialEnvs
from langevinrl.envs.snapshot import EnvState
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.workers import Workers
from langevinrl.errors import UserError, field
from langevinrl.types import Transition

__all__ = [
    "EnvFactory", "EnvLike", "VectorEnv", "as_factory", "build", "env_seed", "episode_seed",
    "name_of", "resolve", "task_sizes",
]  # fmt: skip

LARGEST = 1e20  # no task observes or pays as much, and float32 has room for its square


class VectorEnv:
    """`num_envs` environments for each of S seeds, stepped together; each has a seed of its own.

    An ended episode restarts within the step: `obs` is then the fresh observation, while the
    transition keeps the true last one.  Actions arrive in [-act_bound, act_bound] and are
    stretched affinely to the task's box.

    An environment that raises an error, hangs, loses its process or hands out numbers that are not
    finite ends the run (`on_error="stop"`).  With "reset" it is made anew and takes this step from
    its first observation: nothing is stored of the step that failed, its episode is cut off after
    the one before, and `cut` says where.  A row's obs is then not the next_obs of the row before.
    """

    def __init__(
        self,
        env: EnvLike,
        seeds: Sequence[int],
        num_envs: int,
        act_bound: float = 1.0,
        asynchronous: bool = False,
        timeout: float = 0.0,
        on_error: OnError = "stop",
    ) -> None:
        """`timeout` is the seconds that one environment may take for a step; 0 is no limit."""
        factory, name = as_factory(env), name_of(env)
        self.name, self.on_error = name, on_error
        self.shape = (len(seeds), num_envs)
        self.run_seeds = list(seeds)
        self.seeds = [env_seed(seed, i) for seed in seeds for i in range(num_envs)]
        make = functools.partial(build, factory, name, act_bound)
        kind = Workers if asynchronous else SerialEnvs
        self.vector: SerialEnvs | Workers = kind(make, len(self.seeds), timeout)
        try:
            self.task: TaskSpaces = self._same_task()  # the environment's own spaces
        except BaseException:
            self.close(terminate=True)
            raise
        self.spec = self.task.spec
        self.obs = np.zeros((*self.shape, self.spec.obs_dim), np.float32)
        self.ended = np.zeros(self.shape, bool)
        self.cut = np.zeros(self.shape, bool)  # the episode before this step was lost

    def _same_task(self) -> TaskSpaces:
        """The spaces of the first environment, which all others have too."""
        tasks = self._sound(self.vector.call("task"))
        for lane, task in enumerate(tasks):
            for kind in ("observation_space", "action_space"):
                first, other = getattr(tasks[0], kind), getattr(task, kind)
                if first != other:
                    raise UserError(
                        f"{self.name!r} makes environments that differ: the first has the {kind} "
                        f"{first}, number {lane} has {other}"
                    )
        return tasks[0]

    def reset(self, seeds: Sequence[int | None] | None = None) -> np.ndarray:
        """Start every environment afresh, from its own seed or those given."""
        obs = self._sound(self.vector.ask("reset", list(seeds or self.seeds)))
        for lane, row in enumerate(obs):
            fault = self._judge(Outcome(row, row, 0.0, False, False))
            if fault is not None:
                self._stop(lane, fault)
        self.obs = self._shaped(np.stack(obs))
        return self.obs

    def step(self, action: np.ndarray) -> Transition:
        """Step every environment once with `action` (S, E, A)."""
        sent = self.task.stretch(action.reshape(-1, self.spec.act_dim))
        answers = self.vector.ask("step", list(sent))
        before, self.cut = self.obs, np.zeros(self.shape, bool)
        columns = self._columns(answers)
        if columns is None:
            before = self._mend(answers, sent)
            columns = self._columns(answers)
            assert columns is not None
        obs, last, reward, terminated, truncated = columns
        self.ended = (terminated | truncated).reshape(self.shape)
        self.obs = self._shaped(obs)
        return Transition(
            obs=before,
            action=action,
            reward=reward.astype(np.float32).reshape(self.shape),
            bootstrap=1 - terminated.astype(np.float32).reshape(self.shape),
            next_obs=self._shaped(last),
        )

    def _columns(self, answers: list[Any]) -> tuple[np.ndarray, ...] | None:
        """The fields of all outcomes, each as one array; None if something is wrong with any."""
        size = (self.spec.obs_dim,)
        for answer in answers:
            if isinstance(answer, Fault) or answer.last.shape != size or answer.obs.shape != size:
                return None
        columns = tuple(map(np.array, zip(*answers, strict=True)))
        return columns if all(map(_is_sane, columns[:3])) else None

    def _mend(self, answers: list[Any], sent: np.ndarray) -> np.ndarray:
        """Stop, or replace what failed and its answer; the observations acted from."""
        before = self.obs.copy()
        for lane, answer in enumerate(answers):
            fault = self._judge(answer)
            if fault is not None:
                before[self._place(lane)], answers[lane] = self._replace(lane, sent[lane], fault)
        return before

    def _judge(self, answer: Outcome | Fault) -> Fault | None:
        """What is wrong with an answer to a step: one NaN in replay would soon be everywhere."""
        if isinstance(answer, Fault):
            return answer
        size = (self.spec.obs_dim,)
        if answer.last.shape != size or answer.obs.shape != size:
            return Fault(f"gave an observation of shape {answer.last.shape}; expected {size}")
        expected = f"expected finite numbers within ±{LARGEST:g}"
        if not _is_sane(answer.reward):
            return Fault(f"gave a reward of {answer.reward}; {expected}")
        for obs in (answer.last, answer.obs):
            for i, number in enumerate(() if _is_sane(obs) else obs):
                if not _is_sane(number):
                    return Fault(f"gave an observation whose number {i} is {number}; {expected}")
        return None

    def _replace(self, lane: int, action: np.ndarray, fault: Fault) -> tuple[np.ndarray, Outcome]:
        """Another environment for one that failed: where it starts, and this step from there."""
        if self.on_error == "stop":
            self._stop(lane, fault)
        place = self._place(lane)
        warnings.warn(f"{self._sentence(lane, fault)} It is made anew.", stacklevel=3)
        self.vector.rebuild(lane)
        # Follows from where it failed, so that the same failure starts again from the same place.
        start = env_seed(self.seeds[lane], zlib.crc32(self.obs[place].tobytes()))
        first: list[Any] = self.vector.ask("reset", [start], [lane])
        second = first if isinstance(first[0], Fault) else self.vector.ask("step", [action], [lane])
        again = self._judge(second[0])
        if again is not None:
            self._stop(lane, Fault(f"{fault.what} and, made anew, {again.what}", again.trace))
        self.cut[place] = True
        return first[0], second[0]

    def _stop(self, lane: int, fault: Fault) -> None:
        cause = Remote(fault.trace) if fault.trace else None
        said = self._sentence(lane, fault)
        if self.on_error == "stop":
            said += f" With {field('on_env_error', 'reset')} a run rebuilds it and goes on."
        raise EnvError(said, fault.what) from cause

    def _sentence(self, lane: int, fault: Fault) -> str:
        seed, number = self._place(lane)
        return f"{self.name!r}: environment {number} of seed {self.run_seeds[seed]} {fault.what}."

    def _sound(self, answers: list[Any]) -> list[Any]:
        """The answers; stops at the first that is a fault."""
        for lane, answer in enumerate(answers):
            if isinstance(answer, Fault):
                self._stop(lane, answer)
        return answers

    def _place(self, lane: int) -> tuple[int, int]:
        return divmod(lane, self.shape[1])

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
        obs = arrays.get("obs")
        if obs is None or obs.shape != self.obs.shape:
            raise UserError("the checkpoint's environments have no observations that fit this run")
        self._sound(self.vector.ask("restore", states))
        self.obs = obs
        return True

    def _env_states(self) -> list[EnvState | None]:
        return self._sound(self.vector.call("env_state"))

    def close(self, terminate: bool = False) -> None:
        """Let every environment close; `terminate` ends processes at once, whatever they do."""
        self.vector.close(terminate)


def _is_sane(values: Any) -> bool:
    """Whether all are finite and of a size that a task can mean; NaN is within no limits."""
    return bool((np.abs(values) <= LARGEST).all())


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def env_seed(seed: int, index: int) -> int:
    """A seed for one environment, far from its neighbours'."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def episode_seed(seed: int, episode: int) -> int:
    """A seed for the start of an evaluation episode; never one that training starts from."""
    return int(np.random.SeedSequence([seed, episode, 0xE7A1]).generate_state(1)[0])
