"""Play a trained policy of this repository: NumPy and MuJoCo only, no JAX."""

import sys
from pathlib import Path

import gymnasium as gym

from langevinrl.export import NumpyPolicy

task = sys.argv[1] if len(sys.argv) > 1 else "InvertedDoublePendulum-v4"
policies = Path(__file__).parent.parent / "results" / "policies"
policy = NumpyPolicy(policies / f"{task}.npz", seed=0)

env = gym.make(task)
observation, _ = env.reset(seed=0)
total, ended = 0.0, False
while not ended:
    observation, reward, terminated, truncated, _ = env.step(policy(observation))
    total, ended = total + float(reward), terminated or truncated
print(f"{task}: return {total:.0f}")
