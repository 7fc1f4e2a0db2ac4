"""Videos: frames of the right episodes, in a file that plays, and advice where none can be made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys
from test_callbacks import config

from langevinrl import cli
from langevinrl.errors import UserError
from langevinrl.runs import video
from langevinrl.runs.train import train
from langevinrl.runs.video import RecordVideo, drawn_env, record_video


class Painted(toys.SavedClock):
    """A clock that draws how many steps it has taken, as a brightness, 33 by 40 pixels."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(bound=2.0)
        self.render_mode = render_mode

    def render(self) -> Any:
        return np.full((33, 40, 3), 30 * self.steps, np.uint8)


def painted(render_mode: str | None = None) -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(Painted(render_mode), 7)


@pytest.fixture
def ffmpeg() -> str:
    if not shutil.which("ffmpeg"):
        pytest.importorskip("imageio_ffmpeg")
    return video.require_encoder()


def brightness(ffmpeg: str, path: Path) -> list[float]:
    """Of each frame of a file: 40 by 32, as the last row of an odd side goes."""
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


def test_the_verb_writes_where_it_is_told(
    ffmpeg: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(toys, "wide", painted)
    out = tmp_path / "deep" / "a film.mp4"
    cli.main(["video", str(tiny_run), "--out", str(out)])
    assert capsys.readouterr().out.strip() == str(out)
    assert len(brightness(ffmpeg, out)) == 7
    assert not (tiny_run / "video.mp4").exists()


def test_a_callback_records_at_evaluations(ffmpeg: str, tmp_path: Path) -> None:
    plan = config(tmp_path / "run", eval_every=2)
    folder = train(plan, env=painted, callbacks=[RecordVideo(every=2)], quiet=True)
    (made,) = (folder / "videos").iterdir()  # of evaluations at 2, 4 and 6
    assert made.name == "000000004.mp4" and len(brightness(ffmpeg, made)) == 7


def test_a_callback_that_fails_later_does_not_stop_the_run(
    ffmpeg: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(video, "film", lambda *_: 1 / 0)
    folder = train(config(tmp_path / "run"), env=painted, callbacks=[RecordVideo()], quiet=True)
    assert capsys.readouterr().err.count("no more videos") == 1
    assert (folder / "checkpoints" / "000000006").exists()


class Blind(Painted):
    def render(self) -> Any:
        raise AttributeError("'NoneType' object has no attribute 'eglQueryString'")


@pytest.mark.parametrize(
    ("env", "advice"),
    [
        ("toys:wide", "take render_mode"),
        (Blind, "apt install libegl1.*libosmesa6"),
    ],
)
def test_what_cannot_be_drawn_is_told_with_what_to_do(env: Any, advice: str) -> None:
    with pytest.raises(UserError, match=advice):
        drawn_env(env, 1.0, None)


def test_slips_are_refused(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"takes? camera_name"):
        drawn_env(painted, 1.0, "above")
    monkeypatch.setattr(video, "require_encoder", lambda: "ffmpeg")
    with pytest.raises(UserError, match=r"end in \.mp4"):
        record_video(tiny_run, tmp_path / "film.gif")
    with pytest.raises(UserError, match="0 episodes"):
        record_video(tiny_run, episodes=0)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        record_video(tiny_run, tmp_path / "file" / "film.mp4")


def test_without_the_encoder_it_says_what_to_install(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[video\]'"):
        record_video(tiny_run)


def test_what_the_encoder_says_is_told(ffmpeg: str, tmp_path: Path) -> None:
    frames = iter([np.zeros((8, 8, 3), np.uint8)] * 3)
    with pytest.raises(UserError, match=r"cannot write.*nowhere"):
        video.encode(frames, 30, tmp_path / "nowhere" / "film.mp4")


def shown(frame: np.ndarray) -> float:
    """The share of a picture that is orange, as a cheetah is."""
    red, green = (frame[..., i].astype(int) for i in (0, 1))
    return float((red > green + 40).mean())


def test_what_runs_away_stays_in_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    envs = drawn_env("HalfCheetah-v4", 1.0, None)
    (env,) = envs.vector.call("unwrapped")
    pose = env.data.qpos.copy()
    pose[0] += 100.0
    env.set_state(pose, env.data.qvel)
    frame = video.frame_of(envs)
    envs.close()
    assert shown(frame) > 0.005


def test_mujoco_draws_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    envs = drawn_env("HalfCheetah-v4", 1.0, None)
    frame = video.frame_of(envs)
    envs.close()
    assert frame.shape == (480, 480, 3) and frame.std() > 20  # a picture, not one colour
    assert shown(frame) > 0.005
    with pytest.raises(UserError, match="unknown camera 'trak'; did you mean track"):
        drawn_env("HalfCheetah-v4", 1.0, "trak")
