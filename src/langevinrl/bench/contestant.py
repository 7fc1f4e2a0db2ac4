"""One contestant of `langevinrl bench --learning`: it learns for a time and writes what it reached.

A script of its own, run by whichever interpreter has the contestant's library; so it imports
neither this package nor JAX before it knows which that is.

    python contestant.py sbx-sac HalfCheetah-v5 SEED CORE SECONDS ROWS.csv
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable
from typing import Any

COLUMNS = ("contestant", "env", "seed", "cpu_seconds", "wall_seconds", "env_steps", "return")
EVALUATIONS = 20  # of each run, at equal times
EPISODES = 5  # per evaluation

# What each contestant sets; the rest are its library's own defaults.  SAC's networks are those of
# our fast presets, two layers of 256; CrossQ's critics are four times as wide, equal ones are not.
SBX: dict[str, tuple[str, dict[str, Any]]] = {
    "sbx-sac": ("SAC", {}),
    "sbx-crossq": ("CrossQ", {}),
    "sbx-crossq-equal": ("CrossQ", {"policy_kwargs": {"net_arch": [256, 256]}}),
}


class Race:
    """A contestant's clock and its curve.

    The clock counts this process's CPU time, which other work on the machine does not touch, and
    stands still during evaluations.  Importing and compiling count: users wait for them.
    """

    def __init__(self, head: tuple[str, str, int], seconds: float, path: str) -> None:
        self.head, self.seconds, self.path = head, seconds, path
        self.spent_evaluating = [0.0, 0.0]  # CPU, wall
        self.began = self._clocks()
        self.next_evaluation = 0.0
        with open(path, "w", newline="") as file:
            csv.writer(file).writerow(COLUMNS)

    @staticmethod
    def _clocks() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    def elapsed(self) -> tuple[float, float]:
        """CPU and wall seconds of learning."""
        cpu, wall = self._clocks()
        lost_cpu, lost_wall = self.spent_evaluating
        return cpu - self.began[0] - lost_cpu, wall - self.began[1] - lost_wall

    def step(self, env_steps: int, evaluate: Callable[[], float]) -> bool:
        """To be called after every step of learning; whether the time is over."""
        cpu, wall = self.elapsed()
        if cpu >= self.next_evaluation:
            before = self._clocks()
            reached = evaluate()
            with open(self.path, "a", newline="") as file:
                row = [*self.head, f"{cpu:.1f}", f"{wall:.1f}", env_steps, f"{reached:.2f}"]
                csv.writer(file).writerow(row)
            after = self._clocks()
            for i in (0, 1):
                self.spent_evaluating[i] += after[i] - before[i]
            # From here, not from when it was due: importing and compiling outlast several.
            self.next_evaluation = min(cpu + self.seconds / EVALUATIONS, self.seconds)
        return cpu >= self.seconds


def learn_ours(agent: str, env: str, seed: int, race: Race, preset: str) -> None:
    """A method of this library in its own loop, with nothing on disk."""
    from langevinrl.runs.callbacks import Callback
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.evaluate import Evaluation, Evaluator
    from langevinrl.runs.loop import Run, StepInfo

    class Watch(Callback):
        def on_start(self, run: Run) -> None:
            self.evaluator = Evaluator(run.agent, run.env, [seed], EPISODES)

        def on_step(self, run: Run, info: StepInfo) -> bool:
            def evaluate() -> float:
                played = self.evaluator.play(info.state, info.iteration)
                return Evaluation(info.iteration, played).mean

            return race.step(run.vector_steps * run.config.num_envs, evaluate)

        def on_end(self, run: Run) -> None:
            self.evaluator.close()

    endless = 10**9
    config = RunConfig(env, agent, seed=seed, iterations=endless, preset=preset).resolved()
    with Run(config, callbacks=[Watch()]) as run:
        run.until(endless)


def learn_sbx(name: str, env: str, seed: int, race: Race) -> None:
    """An algorithm of SBX, as its users call it."""
    import gymnasium as gym
    import sbx
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    apart = Monitor(gym.make(env))
    apart.reset(seed=seed + 1_000_000)

    class Watch(BaseCallback):  # type: ignore[misc]  # of a library that is not always there
        def _on_step(self) -> bool:
            def evaluate() -> float:
                return float(evaluate_policy(self.model, apart, EPISODES)[0])

            return not race.step(self.num_timesteps, evaluate)

    algorithm, settings = SBX[name]
    model = getattr(sbx, algorithm)("MlpPolicy", gym.make(env), seed=seed, **settings)
    model.learn(10**9, callback=Watch())


def main(words: list[str]) -> None:
    name, env, seed, core, seconds, path = words
    os.sched_setaffinity(0, {int(core)})  # before any library counts the cores
    race = Race((name, env, int(seed)), float(seconds), path)
    if name in SBX:
        learn_sbx(name, env, int(seed), race)
    else:
        agent, _, preset = name.partition("-")
        learn_ours(agent, env, int(seed), race, preset)


if __name__ == "__main__":
    main(sys.argv[1:])
