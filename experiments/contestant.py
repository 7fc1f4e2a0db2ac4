"""One contestant of contest.py: it learns for a time and writes the returns it reached.

A separate script, because the interpreter that has the contestant's library runs it.  It imports
neither langevinrl nor JAX before it has pinned itself to one core.

    python experiments/contestant.py sac:short,n_step=3 Ant-v4 SEED CORE SECONDS ROWS.csv

A contestant is a name in SBX, or AGENT[:PRESET][,FIELD=VALUE...] with fields of agent and run.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

COLUMNS = ("contestant", "env", "seed", "cpu_seconds", "env_steps", "return", "code")
EVALUATIONS = 20  # per run, at equal times
EPISODES = 5  # per evaluation

# Settings of each contestant; all others are SBX's defaults.  CrossQ's critics are four times as
# wide as SAC's by default, in sbx-crossq-equal they are not.
SBX: dict[str, tuple[str, dict[str, Any]]] = {
    "sbx-sac": ("SAC", {}),
    "sbx-crossq": ("CrossQ", {}),
    "sbx-crossq-equal": ("CrossQ", {"policy_kwargs": {"net_arch": [256, 256]}}),
}


class Race:
    """Clock and learning curve of a contestant.

    The clock counts the CPU time of this process, imports and compilation included, and pauses
    during evaluations.
    """

    def __init__(self, head: tuple[str, str, int], code: str, seconds: float, path: str) -> None:
        self.head, self.code, self.seconds, self.path = head, code, seconds, path
        self.start = time.process_time()
        self.next_evaluation = 0.0
        with open(path, "w", newline="") as file:
            csv.writer(file).writerow(COLUMNS)

    def step(self, env_steps: int, evaluate: Callable[[], float]) -> bool:
        """Evaluate if it is time to; return whether the race is over."""
        now = time.process_time()
        cpu = now - self.start
        if cpu >= self.next_evaluation:
            row = [*self.head, f"{cpu:.1f}", env_steps, f"{evaluate():.2f}", self.code]
            with open(self.path, "a", newline="") as file:
                csv.writer(file).writerow(row)
            self.start += time.process_time() - now
            self.next_evaluation = min(cpu + self.seconds / EVALUATIONS, self.seconds)
        return cpu >= self.seconds


def read_name(name: str) -> tuple[str, str | None, dict[str, Any]]:
    """Split "sac:short,n_step=3" into agent, preset and values of fields."""
    words, *pairs = name.split(",")
    agent, _, preset = words.partition(":")
    values = {}
    for pair in pairs:
        field, _, value = pair.partition("=")
        try:
            values[field] = json.loads(value)
        except json.JSONDecodeError:  # a word
            values[field] = value
    return agent, preset or None, values


def learn_ours(name: str, env: str, seed: int, race: Race) -> None:
    """Train a method of this library in its own loop, without files."""
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

    agent, preset, values = read_name(name)
    own = {f.name for f in dataclasses.fields(RunConfig)}
    run_values = {field: value for field, value in values.items() if field in own}
    hyperparameters = {field: value for field, value in values.items() if field not in own}
    endless = 10**9
    config = RunConfig(
        env, agent, preset, hyperparameters, seed=seed, iterations=endless, **run_values
    ).resolved()
    with Run(config, callbacks=[Watch()]) as run:
        run.until(endless)


def learn_sbx(name: str, env: str, seed: int, race: Race) -> None:
    """Train an algorithm of SBX."""
    import gymnasium as gym
    import sbx
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    eval_env = Monitor(gym.make(env))
    eval_env.reset(seed=seed + 1_000_000)

    class Watch(BaseCallback):  # type: ignore[misc]  # of a library that is not always there
        def _on_step(self) -> bool:
            def evaluate() -> float:
                return float(evaluate_policy(self.model, eval_env, EPISODES)[0])

            return not race.step(self.num_timesteps, evaluate)

    algorithm, settings = SBX[name]
    model = getattr(sbx, algorithm)("MlpPolicy", gym.make(env), seed=seed, **settings)
    model.learn(10**9, callback=Watch())


def code_of(name: str) -> str:
    """Return the commit of this library, with a plus if files have changed, or SBX's version."""
    if name in SBX:
        return f"sbx-rl {metadata.version('sbx-rl')}"
    words = ["git", "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=+"]
    place = os.path.dirname(__file__)
    return subprocess.run(words, cwd=place, capture_output=True, text=True).stdout.strip()


def main(words: list[str]) -> None:
    name, env, seed, core, seconds, path = words
    os.sched_setaffinity(0, {int(core)})  # before any library counts the cores
    race = Race((name, env, int(seed)), code_of(name), float(seconds), path)
    if name in SBX:
        learn_sbx(name, env, int(seed), race)
    else:
        learn_ours(name, env, int(seed), race)


if __name__ == "__main__":
    main(sys.argv[1:])
