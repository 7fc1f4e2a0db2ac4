"""Model: forms of environments, and default folders."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys
from asking import act, evaluate_policy

from langevinrl import Model, UserError
from langevinrl.storage.folder import RunFolder

# One process, so that compiled programs are shared.
pytestmark = pytest.mark.xdist_group("model")
SMALL: dict[str, Any] = {
    "hidden": [8], "num_steps": 3, "warmup": 20, "batch_size": 8, "eval_episodes": 1,
    "eval_every": 9,
}  # fmt: skip


def test_every_form_of_environment_is_accepted(tiny_run: Path, model: Model, here: Path) -> None:
    def kept(env: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
        config = Model("lql", env, **fields).config
        return config.env, config.env_kwargs

    assert kept(toys.timed) == ("toys:timed", {})
    assert kept(functools.partial(toys.Clock, length=5)) == ("toys:Clock", {"length": 5})
    assert kept("toys:Clock", env_kwargs={"length": 5}) == ("toys:Clock", {"length": 5})
    pendulum = gym.make("Pendulum-v1", g=5.0)
    assert kept(pendulum) == ("Pendulum-v1", {"g": 5.0})
    assert kept(pendulum.spec) == ("Pendulum-v1", {"g": 5.0})
    longer = gym.make("Pendulum-v1", max_episode_steps=9)
    assert kept(longer) == ("Pendulum-v1+own", {})  # no name can make it again
    with pytest.raises(UserError, match="env_kwargs is 3; expected a dict"):
        kept("toys:Clock", env_kwargs=3)
    with pytest.raises(UserError, match="env is 3"):
        kept(3)
    same = Model.load(tiny_run, env=toys.wide)
    np.testing.assert_array_equal(act(same), act(model))


def test_env_kwargs_reach_the_environment_and_are_saved(here: Path) -> None:
    model = Model("lql", "toys:Clock", env_kwargs={"length": 3, "bound": 2.0}, **SMALL)
    model.learn(2, progress_bar=False)
    assert model.evaluate(episodes=1).episodes[0].length == 3
    assert Model.load(str(model.folder)).evaluate(episodes=1).episodes[0].length == 3
    assert float(model.spaces.action_space.high[0]) == 2.0
    bad = Model("lql", "Pendulum-v1", env_kwargs={"gravity": 3}, **SMALL)
    with pytest.raises(UserError, match=r"cannot build 'Pendulum-v1'.*gravity"):
        bad.learn(2)
    with pytest.raises(UserError, match="pass a function"):
        Model("lql", "toys:Clock", env_kwargs={"length": object()}, **SMALL).learn(2)


def test_default_folders_do_not_collide(here: Path) -> None:
    models = [Model("lql", "toys:ending", log_every=n, **SMALL) for n in (2, 3)]
    places = [str(model.learn(1, progress_bar=False).folder) for model in models]
    assert places == ["runs/lql-toys-ending-0", "runs/lql-toys-ending-0-2"]
    assert [Model.load(p).config.out for p in places] == places
    assert models[0].learn(1, progress_bar=False).iteration == 2
    anew = Model("lql", "toys:ending", overwrite=True, **SMALL).learn(1, progress_bar=False)
    assert str(anew.folder) == places[0] and Model.load(places[0]).iteration == 1
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        Model("lql", "toys:ending", out=places[0], **SMALL).learn(1)


def test_the_folder_of_a_run_that_failed_in_warm_up_is_reused(here: Path) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match="wheel"):
            Model("lql", "toys:breaking", **(SMALL | {"warmup": 500})).learn(1, progress_bar=False)
    assert [path.name for path in (here / "runs").iterdir()] == ["lql-toys-breaking-0"]
    assert RunFolder("runs/lql-toys-breaking-0").is_untouched()


def test_predict_has_the_signature_of_stable_baselines(model: Model) -> None:
    assert len(evaluate_policy(model, toys.wide(), 2)) == 2


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model trained on a third-party environment with Dict observations."""
    out = tmp_path_factory.mktemp("stranger") / "run"
    model = Model("lql", lambda: toys.stranger(), out=out, **SMALL)
    return model.learn(total_timesteps=30, progress_bar=False)


def test_a_third_party_environment_works(stranger: Model) -> None:
    env = toys.stranger()
    obs, _ = env.reset(seed=0)
    assert env.action_space.contains(act(stranger, obs))
    many = act(stranger, {name: np.stack([value] * 3) for name, value in obs.items()})
    assert many.shape == (3, 2)
    assert np.isfinite(evaluate_policy(stranger, env, 2)).all()
    assert stranger.evaluate(episodes=2).mean <= 0


def test_another_process_without_the_environment_predicts_the_same(
    stranger: Model, here: Path
) -> None:
    stranger.save("stranger")
    obs, _ = toys.stranger().reset(seed=0)
    np.savez("obs.npz", **obs)
    program = (
        "import numpy as np, langevinrl as lrl; model = lrl.Model.load('stranger');"
        "action, _ = model.predict(dict(np.load('obs.npz'))); print(action.tobytes().hex())"
    )
    paths = os.pathsep.join(path for path in sys.path if path and "tests" not in Path(path).parts)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert done.stdout.strip() == act(stranger, obs).tobytes().hex()


@pytest.mark.slow  # needs PyTorch
@pytest.mark.filterwarnings("ignore")  # from other packages
def test_stable_baselines_evaluates_a_model(stranger: Model) -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(toys.stranger())
    env.reset(seed=0)
    asked = {"n_eval_episodes": 4, "return_episode_rewards": True}
    returns, lengths = evaluation.evaluate_policy(stranger, env, deterministic=True, **asked)
    assert len(returns) == 4 and np.isfinite(returns).all() and max(lengths) <= 20
    env.reset(seed=0)
    assert evaluation.evaluate_policy(stranger, env, **asked) == (returns, lengths)
