"""Evaluate a trained model and write one episode to a CSV file."""

import csv
import sys
from pathlib import Path

import gymnasium as gym

import langevinrl as lrl

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/evaluate-and-record")
lrl.Model("sac", "Pendulum-v1", seed=0, warmup=1_000, out=str(out)).learn(iterations=3_000)

model = lrl.Model.load(out)  # any run folder or saved model
played = model.evaluate(episodes=5)
print(f"{played.mean:.1f} ± {played.std:.1f} over {len(played.episodes)} episodes")

env = gym.make("Pendulum-v1")
observation, _ = env.reset(seed=0)
with (out / "episode.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["cos", "sin", "speed", "torque", "reward"])
    ended = False
    while not ended:
        action, _ = model.predict(observation)
        after, reward, terminated, truncated, _ = env.step(action)
        table.writerow([*observation.tolist(), *action.tolist(), reward])
        observation, ended = after, terminated or truncated
print(out / "episode.csv")
