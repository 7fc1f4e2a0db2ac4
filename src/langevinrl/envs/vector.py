"""Vector environment: seeding, action scaling, last observations, faults and snapshots."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from langevinrl.envs.build import build
from langevinrl.envs.factory import EnvLike, as_factory, name_of
from langevinrl.envs.faults import EnvError, Fault, OnError, Remote
from langevinrl.envs.serial import Outcome, SerialEnvs
from langevinrl.envs.snapshot import EnvState
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.workers import Workers
from langevinrl.errors import UserError, field
from langevinrl.types import Transition

LARGEST = 1e20  # limit of observations and rewards; its square fits in float32


class VectorEnv:
    """`num_envs` environments for each of S seeds, stepped together, each with its own seed.

    An episode that ends is reset within the step: `obs` is then the first observation of the next
    episode, and the transition keeps the last one.  Actions are in [-act_bound, act_bound] and are
    scaled affinely to the task's box.

    An environment that raises an error, hangs, loses its process or returns numbers that are not
    finite raises an EnvError (`on_error="stop"`).  With "reset" it is rebuilt and takes this step
    from its first observation.  Nothing is stored of the failed step.  `cut` marks environments
    whose episode ended this way; their `obs` is not the `next_obs` of the step before.
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
        """`timeout` limits the seconds of one environment's step; 0 is no limit."""
        factory, name = as_factory(env), name_of(env)
        self.name, self.on_error = name, on_error
        self.shape = (len(seeds), num_envs)
        self.run_seeds = list(seeds)
        self.seeds = [env_seed(seed, i) for seed in seeds for i in range(num_envs)]
        make = functools.partial(build, factory, name, act_bound)
        kind = Workers if asynchronous else SerialEnvs
        self.vector: SerialEnvs | Workers = kind(make, len(self.seeds), timeout)
        try:
            self.task: TaskSpaces = self._read_task()  # the environment's own spaces
        except BaseException:
            self.close(terminate=True)
            raise
        self.spec = self.task.spec
        self.obs = np.zeros((*self.shape, self.spec.obs_dim), np.float32)
        self.ended = np.zeros(self.shape, bool)
        self.cut = np.zeros(self.shape, bool)  # rebuilt in this step

    def _read_task(self) -> TaskSpaces:
        """Return the spaces of the environments; raise if they differ."""
        tasks = self.call("task")
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
        """Reset every environment, from its own seed or from those given."""
        obs = self._require_answers(self.vector.ask("reset", list(seeds or self.seeds)))
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
            before = self._replace_failed(answers, sent)
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
        """Stack each field of the outcomes; return None if any answer is faulty."""
        size = (self.spec.obs_dim,)
        for answer in answers:
            if isinstance(answer, Fault) or answer.last.shape != size or answer.obs.shape != size:
                return None
        columns = tuple(map(np.array, zip(*answers, strict=True)))
        return columns if all(map(_is_finite, columns[:3])) else None

    def _replace_failed(self, answers: list[Any], sent: np.ndarray) -> np.ndarray:
        """Replace failed environments and their answers; return the observations acted from."""
        before = self.obs.copy()
        for lane, answer in enumerate(answers):
            fault = self._judge(answer)
            if fault is not None:
                before[self._place(lane)], answers[lane] = self._replace(lane, sent[lane], fault)
        return before

    def _judge(self, answer: Outcome | Fault) -> Fault | None:
        """Return the fault of an answer, if any; one NaN in replay would spread to all weights."""
        if isinstance(answer, Fault):
            return answer
        size = (self.spec.obs_dim,)
        if answer.last.shape != size or answer.obs.shape != size:
            return Fault(f"gave an observation of shape {answer.last.shape}; expected {size}")
        expected = f"expected finite numbers within ±{LARGEST:g}"
        if not _is_finite(answer.reward):
            return Fault(f"gave a reward of {answer.reward}; {expected}")
        for obs in (answer.last, answer.obs):
            for i, number in enumerate(() if _is_finite(obs) else obs):
                if not _is_finite(number):
                    return Fault(f"gave an observation whose number {i} is {number}; {expected}")
        return None

    def _replace(self, lane: int, action: np.ndarray, fault: Fault) -> tuple[np.ndarray, Outcome]:
        """Rebuild a failed environment; return its first observation and this step from there."""
        if self.on_error == "stop":
            hint = f" With {field('on_env_error', 'reset')} a run rebuilds it and goes on."
            self._stop(lane, fault, hint)
        place = self._place(lane)
        warnings.warn(f"{self._sentence(lane, fault)} It is rebuilt.", stacklevel=3)
        self.vector.rebuild(lane)
        # Derived from the failed observation, so that a repeated run restarts from the same state.
        start = env_seed(self.seeds[lane], zlib.crc32(self.obs[place].tobytes()))
        first: list[Any] = self.vector.ask("reset", [start], [lane])
        second = first if isinstance(first[0], Fault) else self.vector.ask("step", [action], [lane])
        again = self._judge(second[0])
        if again is not None:
            self._stop(lane, Fault(f"{fault.what} and, rebuilt, {again.what}", again.trace))
        self.cut[place] = True
        return first[0], second[0]

    def _stop(self, lane: int, fault: Fault, hint: str = "") -> NoReturn:
        cause = Remote(fault.trace) if fault.trace else None
        raise EnvError(self._sentence(lane, fault) + hint, fault.what) from cause

    def _sentence(self, lane: int, fault: Fault) -> str:
        seed, number = self._place(lane)
        return f"{self.name!r}: environment {number} of seed {self.run_seeds[seed]} {fault.what}."

    def _require_answers(self, answers: list[Any]) -> list[Any]:
        """Return the answers; raise at the first fault."""
        for lane, answer in enumerate(answers):
            if isinstance(answer, Fault):
                self._stop(lane, answer)
        return answers

    def _place(self, lane: int) -> tuple[int, int]:
        return divmod(lane, self.shape[1])

    def _shaped(self, obs: np.ndarray) -> np.ndarray:
        return np.array(obs, np.float32).reshape(*self.shape, -1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the observations and every environment's arrays, for a checkpoint."""
        named = {"obs": self.obs}
        for i, state in enumerate(self.call("env_state")):
            named |= {f"{i}/{name}": a for name, a in (state.arrays if state else {}).items()}
        return named

    def metadata(self) -> list[dict[str, Any] | None]:
        """Return the JSON part of every environment's state; None if it is unknown."""
        return [state.metadata if state else None for state in self.call("env_state")]

    def restore(
        self, arrays: dict[str, np.ndarray], metadata: list[dict[str, Any] | None], restart: int
    ) -> bool:
        """Restore saved environments and return True.

        If the state of any is unknown, reset all with seeds derived from `restart` and return
        False.
        """
        self.reset([env_seed(seed, restart) for seed in self.seeds])
        if any(one is None for one in metadata):
            return False
        states = [EnvState(_part(arrays, f"{i}/"), one or {}) for i, one in enumerate(metadata)]
        obs = arrays.get("obs")
        if obs is None or obs.shape != self.obs.shape:
            raise UserError("the checkpoint's environments have no observations that fit this run")
        self._require_answers(self.vector.ask("restore", states))
        self.obs = obs
        return True

    def call(self, name: str) -> list[Any]:
        """Return an attribute of each environment, or the result if it is a method."""
        return self._require_answers(self.vector.ask("call", [name] * len(self.seeds)))

    def close(self, terminate: bool = False) -> None:
        """Close every environment, with one warning if that fails or takes too long.

        `terminate` kills worker processes at once and does not warn.
        """
        answers = self.vector.close(terminate)
        failed = [(lane, one) for lane, one in enumerate(answers) if isinstance(one, Fault)]
        if failed and not terminate:
            # At this line, so that Python shows the warning of all vectors once.
            warnings.warn(self._sentence(*failed[0]), stacklevel=1)


def _is_finite(values: Any) -> bool:
    """Return whether all are finite and within `LARGEST`."""
    return bool((np.abs(values) <= LARGEST).all())


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def env_seed(seed: int, index: int) -> int:
    """Return a seed for one environment, independent of those of other indices."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def episode_seed(seed: int, episode: int) -> int:
    """Return a seed for an evaluation episode, distinct from the seeds of training."""
    return int(np.random.SeedSequence([seed, episode, 0xE7A1]).generate_state(1)[0])
