"""Tests of video recording: frames, cameras, encoding and error messages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium as gym
import numpy as np
import pytest
import toys
from tiny import lql_config as config

from langevinrl import cli
from langevinrl.callbacks import RecordVideo
from langevinrl.envs.factory import as_factory
from langevinrl.errors import UserError
from langevinrl.logs import progress, video
from langevinrl.logs.progress import ProgressLine
from langevinrl.runs import video as runs_video
from langevinrl.runs.train import train
from langevinrl.runs.video import record_video


class Painted(toys.SavedClock):
    """A clock that draws its step count as a brightness, 33 by 40 pixels."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, shade: int = 30) -> None:
        super().__init__(bound=2.0)
        self.render_mode, self.shade = render_mode, shade

    def render(self) -> Any:
        return np.full((33, 40, 3), self.shade * self.steps, np.uint8)


def painted(render_mode: str | None = None, shade: int = 30) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(Painted(render_mode, shade), 7)


@pytest.fixture
def ffmpeg() -> str:
    if not shutil.which("ffmpeg"):
        pytest.importorskip("imageio_ffmpeg")
    return video.require_encoder()


def brightness(ffmpeg: str, path: Path) -> list[float]:
    """Return the mean of each frame: 40 by 32, as an odd side loses its last row."""
    words = [ffmpeg, "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24"]
    raw = subprocess.run([*words, "-"], capture_output=True, check=True).stdout
    return [float(x) for x in np.frombuffer(raw, np.uint8).reshape(-1, 40 * 32 * 3).mean(axis=1)]


def test_every_step_of_every_episode_is_a_frame(
    ffmpeg: str, tiny_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    made = record_video(folder, env=painted, episodes=2)
    assert made == folder / "video.mp4"
    shown = brightness(ffmpeg, made)
    # Seven steps: the start and six more, as the seventh begins the next episode.
    np.testing.assert_allclose(shown, [30 * step for step in range(7)] * 2, atol=4)
    assert not list(folder.glob("*partial*"))


def test_the_command_writes_to_out(
    ffmpeg: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(toys, "wide", painted)
    monkeypatch.setattr(progress, "HEARTBEAT", 0.0)
    out = tmp_path / "deep" / "a film.mp4"
    cli.main(["video", str(tiny_run), "--out", str(out)])
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [f"a film.mp4  episodes  0/1  {step} steps" for step in range(1, 7)]
    assert last == str(out)
    assert len(brightness(ffmpeg, out)) == 7
    assert not (tiny_run / "video.mp4").exists()


def test_env_kwargs_of_the_run_reach_the_environment(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    stored = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(stored | {"env_kwargs": {"shade": 10}}))
    monkeypatch.setattr(toys, "wide", painted)
    monkeypatch.setattr(runs_video, "require_encoder", lambda: "ffmpeg")

    def film(act: Any, envs: Any, starts: Any, out: Path, quiet: bool) -> Path:
        line = ProgressLine("", 1, 0, quiet)
        frames = video.play_frames(act, envs, starts, line)
        assert [int(frame.mean()) for frame in frames] == [10 * step for step in range(7)]
        return out

    monkeypatch.setattr(runs_video, "film", film)
    assert record_video(folder, trust=True) == folder / "video.mp4"


def test_a_callback_records_at_evaluations(ffmpeg: str, tmp_path: Path) -> None:
    plan = config(tmp_path / "run", eval_every=2)
    folder = train(plan, env=painted, callbacks=[RecordVideo(every=2)], quiet=True)
    (made,) = (folder / "videos").iterdir()  # of evaluations at 2, 4 and 6
    assert made.name == "000000004.mp4" and len(brightness(ffmpeg, made)) == 7


def test_a_callback_that_fails_does_not_stop_the_run(
    ffmpeg: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs_video, "film", lambda *_: 1 / 0)
    folder = train(config(tmp_path / "run"), env=painted, callbacks=[RecordVideo()], quiet=True)
    assert capsys.readouterr().err.count("no more videos") == 1
    assert (folder / "checkpoints" / "000000006").exists()


class Blind(Painted):
    def render(self) -> Any:
        raise AttributeError("'NoneType' object has no attribute 'eglQueryString'")


@pytest.mark.parametrize(
    ("env", "camera", "message"),
    [
        ("toys:wide", None, "take render_mode"),
        (Blind, None, "apt install libegl1.*libosmesa6"),
        (painted, "above", "takes? camera_name"),
        ("HalfCheetah-v4", "trak", "unknown camera 'trak'; did you mean track"),
    ],
)
def test_an_environment_that_cannot_be_drawn_raises_with_advice(
    env: Any, camera: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        video.rendering_env(as_factory(env), 1.0, camera)


def test_bad_arguments_raise(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_video, "require_encoder", lambda: "ffmpeg")
    with pytest.raises(UserError, match=r"end in \.mp4"):
        record_video(tiny_run, tmp_path / "film.gif")
    with pytest.raises(UserError, match="0 episodes"):
        record_video(tiny_run, episodes=0)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        record_video(tiny_run, tmp_path / "file" / "film.mp4")


def test_a_missing_encoder_names_the_extra(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[video\]'"):
        record_video(tiny_run)


def test_an_error_of_the_encoder_is_shown(ffmpeg: str, tmp_path: Path) -> None:
    frames = iter([np.zeros((8, 8, 3), np.uint8)] * 3)
    with pytest.raises(UserError, match=r"cannot write.*nowhere"):
        video.encode(frames, 30, tmp_path / "nowhere" / "film.mp4")


def orange_share(frame: np.ndarray) -> float:
    """Return the share of a picture that is orange, as the cheetah is."""
    red, green = (frame[..., i].astype(int) for i in (0, 1))
    return float((red > green + 40).mean())


def test_mujoco_is_made_once_and_its_camera_follows_the_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    make = Mock(wraps=gym.make)
    monkeypatch.setattr(gym, "make", make)
    envs = video.rendering_env(as_factory("HalfCheetah-v4"), 1.0, None)
    make.assert_called_once()
    frame = video.render_frame(envs)
    assert frame.shape == (480, 480, 3) and frame.std() > 20  # a picture, not one colour
    assert orange_share(frame) > 0.005
    (env,) = envs.call("unwrapped")
    pose = env.data.qpos.copy()
    pose[0] += 100.0
    env.set_state(pose, env.data.qvel)
    assert orange_share(video.render_frame(envs)) > 0.005
    envs.close()
