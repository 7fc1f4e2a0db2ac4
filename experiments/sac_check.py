"""Our SAC and Stable-Baselines3's on Pendulum-v1: same budget, same settings, three seeds.

From the root of the repository:

python experiments/sac_check.py ours
python experiments/sac_check.py theirs    # needs stable-baselines3, best in its own environment
python experiments/sac_check.py draw      # table.csv and curves.png under results/sac_check
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path("results/sac_check")
TASK, SEEDS, WARMUP, ITERATIONS, EVERY, EPISODES = "Pendulum-v1", 3, 1_000, 9_000, 500, 20
RATE, HIDDEN, BATCH, GAMMA, TAU = 1e-3, (256, 256), 256, 0.99, 0.005


def ours() -> None:
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.train import train

    # The defaults of Stable-Baselines3, except the learning rate.
    fields = {
        "hidden": HIDDEN, "activation": "relu", "gamma": GAMMA, "target_rate": TAU,
        "reward_scale": 1.0, "initial_alpha": 1.0, "critic_learning_rate": RATE,
        "actor_learning_rate": RATE, "temperature_learning_rate": RATE,
    }  # fmt: skip
    train(
        RunConfig(
            TASK, agent="sac", hyperparameters=fields, iterations=ITERATIONS, seeds=SEEDS,
            out=str(HERE / "langevinrl"), num_envs=1, warmup=WARMUP, batch_size=BATCH,
            capacity=20_000, eval_every=EVERY, eval_episodes=EPISODES,
        )
    )  # fmt: skip


def theirs() -> None:
    import gymnasium
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    folder = HERE / "stable-baselines3"
    folder.mkdir(parents=True, exist_ok=True)
    versions = {m.__name__: m.__version__ for m in (stable_baselines3, torch, gymnasium)}
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
    with (folder / "evaluations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        # The columns of a run folder, written out: this environment may not have langevinrl.
        table.writerow(
            "agent env seed iterations env_steps episode return length wall_seconds".split()
        )
        for seed in range(SEEDS):
            train_theirs(stable_baselines3, seed, table)
            file.flush()


def train_theirs(sb3: Any, seed: int, table: Any) -> None:
    from stable_baselines3.common.evaluation import evaluate_policy

    model = sb3.SAC(
        "MlpPolicy", TASK, learning_rate=RATE, buffer_size=20_000, learning_starts=WARMUP,
        batch_size=BATCH, tau=TAU, gamma=GAMMA, seed=seed,
        policy_kwargs={"net_arch": list(HIDDEN)}, device="cpu",
    )  # fmt: skip
    judge = sb3.common.env_util.make_vec_env(TASK, n_envs=EPISODES, seed=1_000)
    began = time.monotonic()
    for done in range(EVERY, ITERATIONS + 1, EVERY):
        more = EVERY + (WARMUP if done == EVERY else 0)
        model.learn(more, reset_num_timesteps=False)
        returns, lengths = evaluate_policy(
            model, judge, EPISODES, deterministic=True, return_episode_rewards=True, warn=False
        )
        clock = round(time.monotonic() - began, 2)
        for episode, (total, length) in enumerate(zip(returns, lengths, strict=True)):
            steps = done + WARMUP
            table.writerow(["sb3 sac", TASK, seed, done, steps, episode, total, length, clock])
        print(f"stable-baselines3 seed {seed}  {done}  return {sum(returns) / EPISODES:.1f}")


def error_over_starts(folder: Path) -> float:
    """Return the standard error of the last five evaluations over episode starts."""
    import numpy as np

    from langevinrl.storage.folder import RunFolder

    starts: dict[tuple[str, str], list[float]] = {}
    for row in RunFolder(folder).read_evaluations():
        if int(row["iterations"]) > ITERATIONS - 5 * EVERY:
            starts.setdefault((row["iterations"], row["episode"]), []).append(float(row["return"]))
    means = [np.mean(returns) for returns in starts.values()]
    return float(np.std(means, ddof=1) / len(means) ** 0.5)


def draw() -> None:
    import numpy as np

    from langevinrl.analysis import draw_group, find_runs, group_runs
    from langevinrl.analysis.figures import pyplot
    from langevinrl.analysis.statistics import standard_deviation
    from langevinrl.analysis.tables import write_csv

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
    rows = []
    styles = {"langevinrl": "#0072B2", "stable-baselines3": "#D55E00"}
    for name, colour in styles.items():
        (group,) = group_runs(find_runs([HERE / name]))
        draw_group(axis, group, color=colour, label=f"{name}, mean of {SEEDS} seeds")
        # The last five evaluations of a seed: single ones depend on the starts of their episodes.
        last = np.array([seed.returns[-5:].mean() for seed in group.series])
        rows.append({"implementation": name, "seeds": SEEDS, "last five": f"{last.mean():.1f}",
                     "error over starts": f"{error_over_starts(HERE / name):.1f}",
                     "spread over seeds": f"{standard_deviation(last):.1f}",
                     **{f"seed {i}": f"{value:.1f}" for i, value in enumerate(last)}})  # fmt: skip
    axis.set(xlabel="updates", ylabel="return", title=f"SAC on {TASK}")
    axis.legend(frameon=False)
    figure.savefig(HERE / "curves.png", dpi=150)
    write_csv(HERE / "table.csv", rows)
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    {"ours": ours, "theirs": theirs, "draw": draw}[sys.argv[1]]()
