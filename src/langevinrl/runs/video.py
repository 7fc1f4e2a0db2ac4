"""Episodes as an MP4: played as evaluation plays them, drawn by the environment itself."""

from __future__ import annotations

import contextlib
import ctypes.util
import inspect
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.vector import EnvFactory, VectorEnv, episode_seed, name_of, resolve
from langevinrl.errors import UserError, unknown
from langevinrl.runs import compiled
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation, observation_seed, policy
from langevinrl.runs.loop import Run
from langevinrl.runs.train import read_config
from langevinrl.storage import checkpoint
from langevinrl.storage.cache import use_cache
from langevinrl.storage.files import require_no_link
from langevinrl.storage.folder import STATE, VIDEO, VIDEOS, RunFolder, checkpoint_name
from langevinrl.types import PyTree

RGB = "rgb_array"  # Gymnasium's word for frames as arrays
# The camera that goes along with a body; Gymnasium's own choice stands still in some tasks.
FOLLOWING = "track"
NO_RENDERER = (
    "Without a screen MuJoCo draws by software: on Debian or Ubuntu, "
    "`apt install libegl1 libgl1-mesa-dri` and MUJOCO_GL=egl, "
    "or `apt install libosmesa6` and MUJOCO_GL=osmesa."
)


def record_video(
    path: str | Path,
    out: str | Path | None = None,
    *,
    env: str | EnvFactory | None = None,
    episodes: int = 1,
    seed: int = 0,
    camera: str | None = None,
    trust: bool = False,
) -> Path:
    """Play episodes of the run or model in a folder, with its first trained seed, into an MP4.

    record_video("runs/cheetah", episodes=2)    # runs/cheetah/video.mp4

    `env` replaces the environment by name, `seed` decides the starts as in evaluation, and `camera`
    is one of the MuJoCo model's, by name or number.  `trust` allows names of someone's own that
    the folder holds.
    """
    if not 1 <= episodes <= 100_000 or not 0 <= seed < 2**32:
        raise UserError(f"cannot play {episodes} episodes from seed {seed}")
    folder = RunFolder(path)
    config = read_config(folder, trust, env)
    require_encoder()
    if config.compilation_cache:
        use_cache()
    target = checked_target(Path(out) if out else require_no_link(folder.path / VIDEO))
    envs = drawn_env(env or config.env, config.action_bound, camera)
    try:
        agent = config.make_agent(envs.spec)
        template = jax.eval_shape(jax.vmap(agent.init), compiled.seed_keys(config.seed_list))
        saved = checkpoint.load(folder, groups=[STATE])
        states = checkpoint.fill_leaves(template, saved.arrays[STATE])
        starts = [episode_seed(seed, episode) for episode in range(episodes)]
        return film(agent, first_of(states), envs, starts, target)
    finally:
        envs.close()


class RecordVideo(Callback):
    """Leaves an MP4 of one episode at each evaluation, or each `every`-th of them.

    train(config, callbacks=[RecordVideo()])    # videos/000005000.mp4 and so on

    What cannot be drawn is refused at the start; a fault later on is told once, and the run goes
    on without videos.
    """

    def __init__(self, every: int = 1, camera: str | None = None) -> None:
        self.every, self.camera = every, camera
        self.num_heard, self.working = 0, True

    def on_start(self, run: Run) -> None:
        require_encoder()
        self.envs = drawn_env(run.env, run.config.action_bound, self.camera)

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.num_heard += 1
        if not self.working or self.num_heard % self.every:
            return
        name = checkpoint_name(evaluation.iteration)
        start = episode_seed(evaluation.iteration, 0)  # the first of those just evaluated
        try:
            place = checked_target(Path(run.config.out or ".") / VIDEOS / f"{name}.mp4")
            film(run.agent, first_of(run.state), self.envs, [start], place)
        except Exception as error:  # a full disk, say: no reason to stop a run
            self.working = False
            print(f"langevinrl: no more videos ({error}); the run goes on.", file=sys.stderr)

    def on_end(self, run: Run) -> None:
        self.envs.close()


def first_of(states: PyTree) -> PyTree:
    """The first seed's state."""
    return jax.tree.map(lambda leaf: leaf[0], states)


def film(agent: Agent, state: PyTree, envs: VectorEnv, starts: Sequence[int], out: Path) -> Path:
    """Play an episode from each start and write them, one after the other, to `out`."""
    draft = out.with_name(f".{out.stem}.partial{out.suffix}")
    frames = played_frames(agent, state, envs, starts)
    encode(frames, frames_per_second(envs), draft)
    return draft.replace(out)


def encode(frames: Iterator[np.ndarray], fps: float, out: Path) -> None:
    """Frames of one size into an MP4, H.264, as every player reads it."""
    first = next(frames)
    height, width = first.shape[:2]
    # yuv420p wants even sides: of an odd one the last row of pixels goes.
    words = [
        require_encoder(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
        "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264",
        "-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p",
        "-movflags", "+faststart", str(out),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=said)
        assert process.stdin is not None
        try:
            for frame in itertools.chain([first], frames):
                process.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:  # it has ended, and says why below
            pass
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            failed = process.wait()
        said.seek(0)
        if failed:
            raise UserError(f"cannot write {out}: {said.read().decode(errors='replace').strip()}")


def played_frames(
    agent: Agent, state: PyTree, envs: VectorEnv, starts: Sequence[int]
) -> Iterator[np.ndarray]:
    """Every frame of the episodes, (height, width, 3) bytes each."""
    act = jax.jit(partial(policy, agent))
    for start in starts:
        obs = envs.reset([start])[0]
        yield frame_of(envs)
        while True:
            envs.step(np.asarray(act(state, obs, observation_seed(obs)))[None])
            if envs.ended.all():  # the next frame is another episode's
                break
            obs = envs.obs[0]
            yield frame_of(envs)


def frames_per_second(envs: VectorEnv) -> float:
    (metadata,) = envs.vector.call("metadata")
    return float(metadata.get("render_fps") or 30)


def frame_of(envs: VectorEnv) -> np.ndarray:
    frames = envs.vector.call("render")
    frame = np.asarray(frames[0] if frames else None)
    if frame.ndim != 3 or frame.shape[2] != 3:
        raise UserError(
            f"render() gave {type(frames[0] if frames else None)}; expected an RGB array"
        )
    return frame.astype(np.uint8, copy=False)


def drawn_env(env: str | EnvFactory, act_bound: float, camera: str | None) -> VectorEnv:
    """One environment that has drawn its first frame; all that can go wrong is told as advice."""
    name = name_of(env)
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        library = "egl" if ctypes.util.find_library("EGL") else "osmesa"
        os.environ.setdefault("MUJOCO_GL", library)
    envs = VectorEnv(partial(_make, env, camera), [0], 1, act_bound)
    # A function of someone's own need not take a camera.
    by_name = isinstance(env, str) and ":" not in env
    if camera is None and by_name and FOLLOWING in _cameras(envs):
        envs.close()
        return drawn_env(env, act_bound, FOLLOWING)
    try:
        _require_camera(envs, camera)
        envs.reset()
        frame_of(envs)
    except UserError:
        envs.close()
        raise
    except Exception as error:  # each renderer has its own ways to fail
        envs.close()
        raise UserError(f"cannot draw {name!r}: {_reason(error)}. {_advice(error)}") from error
    return envs


def _make(env: str | EnvFactory, camera: str | None) -> gym.Env[Any, Any]:
    """The environment, made so that it draws."""
    name, factory = name_of(env), resolve(env) if isinstance(env, str) else env
    view: dict[str, Any] = {}
    if camera is not None:
        view = {"camera_id": int(camera)} if camera.isdigit() else {"camera_name": camera}
    try:
        if "render_mode" in inspect.signature(factory).parameters:
            return factory(render_mode=RGB, **view)  # type: ignore[call-arg]  # just looked up
        made = factory()
        if made.render_mode == RGB and not view:
            return made
        spec = made.spec
        made.close()
        if spec is not None:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*out of date", DeprecationWarning)
                return gym.make(spec, render_mode=RGB, **view)
    except TypeError as error:
        raise UserError(
            f"{name!r} does not take {', '.join(view) or 'render_mode'}: {error}"
        ) from error
    except (gym.error.Error, ImportError, AttributeError) as error:
        raise UserError(f"cannot make {name!r} draw: {_reason(error)}. {_advice(error)}") from error
    raise UserError(
        f"{name!r} cannot be asked to draw: let its function take render_mode and hand it on"
    )


def _require_camera(envs: VectorEnv, camera: str | None) -> None:
    """Refuses a camera that the MuJoCo model has not got; it would show the default one."""
    if camera is None or camera.isdigit():
        return
    names = _cameras(envs)
    if camera not in names:
        raise UserError(unknown("camera", camera, names))


def _cameras(envs: VectorEnv) -> list[str]:
    """Names of a MuJoCo model's cameras; none of what has no such model."""
    try:
        (model,) = envs.vector.call("model")
        return [model.camera(i).name for i in range(model.ncam)]
    except AttributeError:
        return []


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _advice(error: Exception) -> str:
    if "pygame" in str(error):
        return "pip install 'gymnasium[classic-control]'"
    return NO_RENDERER


def require_encoder() -> str:
    """The ffmpeg to encode with: the system's, else the one that the extra brings."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise UserError("videos need ffmpeg: pip install 'langevinrl[video]'") from error


def checked_target(path: Path) -> Path:
    """A place for an MP4, its folder made; refuses other formats and places one cannot write."""
    if path.suffix.lower() != ".mp4":
        raise UserError(f"{path} does not end in .mp4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {path.parent}: {error.strerror}") from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"cannot write to {path.parent}")
    return path
