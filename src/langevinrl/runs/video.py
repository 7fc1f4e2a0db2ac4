"""Videos of a trained agent: `record_video` for a run folder, `RecordVideo` during training."""

from __future__ import annotations

from pathlib import Path

import jax

from langevinrl.agents import Agent
from langevinrl.envs.factory import EnvFactory, as_factory
from langevinrl.envs.vector import episode_seed
from langevinrl.errors import UserError
from langevinrl.logs.console import print_error
from langevinrl.logs.video import Act, film, rendering_env, require_encoder, require_target
from langevinrl.runs import compiled
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run
from langevinrl.runs.policy import observation_seed, seeded_action
from langevinrl.runs.train import read_config
from langevinrl.storage import checkpoint
from langevinrl.storage.cache import use_cache
from langevinrl.storage.files import require_inside, require_no_link
from langevinrl.storage.folder import STATE, VIDEO, VIDEOS, RunFolder, checkpoint_name
from langevinrl.types import PyTree


def record_video(
    path: str | Path,
    out: str | Path | None = None,
    *,
    env: str | EnvFactory | None = None,
    episodes: int = 1,
    seed: int = 0,
    camera: str | None = None,
    trust: bool = False,
    quiet: bool = False,
) -> Path:
    """Play episodes of the run or model in a folder, with its first trained seed, into an MP4.

    record_video("runs/cheetah", episodes=2)    # runs/cheetah/video.mp4

    `env` replaces the environment, `seed` decides the starts as in evaluation, and `camera` is one
    of the MuJoCo model's, by name or number.  `trust` allows names in the folder that import
    Python modules.  `quiet` hides the progress line.
    """
    if not 1 <= episodes <= 100_000 or not 0 <= seed < 2**32:
        raise UserError(f"cannot play {episodes} episodes from seed {seed}")
    folder = RunFolder(path)
    config = read_config(folder, trust, env)
    require_encoder()
    if config.compilation_cache:
        use_cache()
    target = require_target(Path(out) if out else require_no_link(folder.path / VIDEO))
    used = env or config.env
    factory = as_factory(used, config.env_kwargs) if isinstance(used, str) else used
    envs = rendering_env(factory, config.action_bound, camera)
    try:
        agent = config.make_agent(envs.spec)
        template = jax.eval_shape(jax.vmap(agent.init), compiled.seed_keys(config.seed_list))
        saved = checkpoint.load(folder, groups=[STATE])
        states = checkpoint.fill_leaves(template, saved.arrays[STATE])
        starts = [episode_seed(seed, episode) for episode in range(episodes)]
        return film(_first_policy(agent, states), envs, starts, target, quiet=quiet)
    finally:
        envs.close()


class RecordVideo(Callback):
    """Records an MP4 of one episode at each evaluation, or at each `every`-th of them.

    train(config, callbacks=[RecordVideo()])    # videos/000005000.mp4 and so on

    An environment that cannot be rendered raises at the start.  A later failure prints one line,
    and the run goes on without videos.
    """

    def __init__(self, every: int = 1, camera: str | None = None) -> None:
        self.every, self.camera = every, camera
        self.num_evaluations, self.working = 0, True

    def on_start(self, run: Run) -> None:
        require_encoder()
        self.envs = rendering_env(run.env, run.config.action_bound, self.camera)

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.num_evaluations += 1
        if not self.working or self.num_evaluations % self.every:
            return
        name = checkpoint_name(evaluation.iteration)
        start = episode_seed(evaluation.iteration, 0)  # that of the first evaluation episode
        try:
            folder = run.folder or Path()
            target = require_target(require_inside(folder, folder / VIDEOS / f"{name}.mp4"))
            film(_first_policy(run.agent, run.state), self.envs, [start], target)
        except Exception as error:  # such as a full disk: no reason to stop a run
            self.working = False
            print_error(f"no more videos ({error}); the run goes on.")

    def on_end(self, run: Run) -> None:
        self.envs.close()


def _first_policy(agent: Agent, states: PyTree) -> Act:
    """Return the evaluation policy of the first trained seed."""
    state = jax.tree.map(lambda leaf: leaf[0], states)
    act = compiled.compile_once(seeded_action, agent, "keyed")
    return lambda obs: act(state, obs, observation_seed(obs))
