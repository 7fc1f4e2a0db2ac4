"""Episodes recorded as an MP4: rendering, cameras and encoding."""

from __future__ import annotations

import contextlib
import ctypes.util
import inspect
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from langevinrl.envs.factory import EnvFactory, FunctionFactory, GymFactory, name_of, one_line
from langevinrl.envs.faults import EnvError
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError, unknown
from langevinrl.logs.progress import ProgressLine

Act: TypeAlias = Callable[[np.ndarray], Any]  # observations (1, O) to actions (1, A)
RGB = "rgb_array"  # Gymnasium's render mode for frames as arrays
FOLLOWING = "track"  # a camera that follows the body; Gymnasium's default does not in some tasks
NO_RENDERER = (
    "Without a screen MuJoCo renders by software: on Debian or Ubuntu, "
    "`apt install libegl1 libgl1-mesa-dri` and MUJOCO_GL=egl, "
    "or `apt install libosmesa6` and MUJOCO_GL=osmesa."
)


def film(
    act: Act, envs: VectorEnv, starts: Sequence[int], out: Path, *, quiet: bool = True
) -> Path:
    """Play one episode from each start seed and write them, one after the other, to `out`."""
    draft = out.with_name(f".{out.stem}.partial{out.suffix}")
    draft.unlink(missing_ok=True)  # ffmpeg would write through a link
    (metadata,) = envs.call("metadata")
    line = ProgressLine(f"{out.name}  episodes", len(starts), 0, quiet)
    frames = play_frames(act, envs, starts, line)
    try:
        encode(frames, float(metadata.get("render_fps") or 30), draft)
    finally:
        line.close()
    return draft.replace(out)


def play_frames(
    act: Act, envs: VectorEnv, starts: Sequence[int], line: ProgressLine
) -> Iterator[np.ndarray]:
    """Yield every frame of the episodes, (height, width, 3) bytes each."""
    for episode, start in enumerate(starts):
        obs = envs.reset([start])[0]
        yield render_frame(envs)
        for step in itertools.count(1):
            envs.step(np.asarray(act(obs))[None])
            if envs.ended.all():  # the next frame belongs to the next episode
                break
            line.note(f"{step} steps")
            obs = envs.obs[0]
            yield render_frame(envs)
        line.iteration = episode + 1


def render_frame(envs: VectorEnv) -> np.ndarray:
    """Return the current frame of the only environment."""
    (rendered,) = envs.call("render")
    frame = np.asarray(rendered)
    if frame.ndim != 3 or frame.shape[2] != 3:
        raise UserError(f"render() gave {type(rendered)}; expected an RGB array")
    return frame.astype(np.uint8, copy=False)


def encode(frames: Iterator[np.ndarray], fps: float, out: Path) -> None:
    """Write frames of one size as an H.264 MP4."""
    first = next(frames)
    height, width = first.shape[:2]
    # yuv420p needs even sides, so an odd one loses its last row of pixels.
    command = [
        require_encoder(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
        "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264",
        "-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p",
        "-movflags", "+faststart", str(out),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors)
        assert process.stdin is not None
        try:
            for frame in itertools.chain([first], frames):
                process.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:  # ffmpeg has ended; its error is reported below
            pass
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            failed = process.wait()
        errors.seek(0)
        if failed:
            raise UserError(f"cannot write {out}: {errors.read().decode(errors='replace').strip()}")


def rendering_env(factory: EnvFactory, act_bound: float, camera: str | None) -> VectorEnv:
    """Build one environment that has rendered its first frame; raise with advice if it cannot."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        library = "egl" if ctypes.util.find_library("EGL") else "osmesa"
        os.environ.setdefault("MUJOCO_GL", library)
    envs = VectorEnv(partial(_make, factory, camera), [0], 1, act_bound)
    try:
        _choose_camera(envs, camera, follow=isinstance(factory, GymFactory))
        envs.reset()
        render_frame(envs)
    except EnvError as error:
        envs.close()
        raise UserError(
            f"cannot render {name_of(factory)!r}: it {error.what}. {_advice(error)}"
        ) from error
    except UserError:
        envs.close()
        raise
    return envs


def _make(factory: EnvFactory, camera: str | None) -> gym.Env[Any, Any]:
    """Make the environment in a mode that renders frames."""
    name = name_of(factory)
    view: dict[str, Any] = {}
    if camera is not None:
        view = {"camera_id": int(camera)} if camera.isdigit() else {"camera_name": camera}
    function = factory.function if isinstance(factory, FunctionFactory) else factory
    is_gym = isinstance(factory, GymFactory)
    try:
        if is_gym or "render_mode" in inspect.signature(function).parameters:
            return factory(render_mode=RGB, **view)  # type: ignore[call-arg]
        made = factory()
        if made.render_mode == RGB and not view:
            return made
        spec = made.spec
        made.close()
        if spec is not None:
            return gym.make(spec, render_mode=RGB, **view)
    except TypeError as error:
        raise UserError(
            f"{name!r} does not take {', '.join(view) or 'render_mode'}: {error}"
        ) from error
    except (gym.error.Error, ImportError, AttributeError) as error:
        raise UserError(f"cannot render {name!r}: {one_line(error)}. {_advice(error)}") from error
    raise UserError(f"{name!r} cannot render: let its function take render_mode and pass it on")


def _choose_camera(envs: VectorEnv, camera: str | None, follow: bool) -> None:
    """Raise if a MuJoCo model lacks the camera; without one, `follow` selects the following one.

    MuJoCo would show its default camera in place of an unknown one.
    """
    try:
        (model,) = envs.call("model")
        names = [model.camera(i).name for i in range(model.ncam)]
    except EnvError:  # it has no model of MuJoCo
        names = []
    if camera is not None and not camera.isdigit() and camera not in names:
        raise UserError(unknown("camera", camera, names))
    if camera is None and follow and FOLLOWING in names:
        (renderer,) = envs.call("mujoco_renderer")
        renderer.camera_id = names.index(FOLLOWING)


def _advice(error: Exception) -> str:
    if "pygame" in str(error):
        return "pip install 'gymnasium[classic-control]'"
    return NO_RENDERER


def require_encoder() -> str:
    """Return the path of ffmpeg: the system's, else that of the package imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise UserError("videos need ffmpeg: pip install 'langevinrl[video]'") from error


def require_target(path: Path) -> Path:
    """Return a path for an MP4 and create its folder; raise if it cannot be written there."""
    if path.suffix.lower() != ".mp4":
        raise UserError(f"{path} does not end in .mp4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {path.parent}: {error.strerror}") from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"cannot write to {path.parent}")
    return path
