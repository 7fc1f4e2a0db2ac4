"""The front door: learn, predict, evaluate, save, load."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys

import langevinrl as lrl
from langevinrl import Model, UserError
from langevinrl.runs.config import RunConfig
from langevinrl.runs.folder import RunFolder
from langevinrl.runs.loop import Run, StepInfo

OBS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def act(model: Model, obs: Any = OBS, **how: Any) -> np.ndarray:
    action, state = model.predict(obs, **how)
    assert state is None
    return action


@pytest.fixture(scope="module")
def model(tiny_run: Path) -> Model:
    return Model.load(tiny_run)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tiny(tiny_fields: dict[str, Any]) -> dict[str, Any]:
    """Without the seed, which Model takes by itself."""
    return {name: value for name, value in tiny_fields.items() if name != "iterations"}


def test_learning_twice_is_learning_once_as_long(
    tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    model = Model("nclql", "toys:wide", out=tmp_path / "run", **tiny)
    assert model.learn(iterations=4, progress_bar=False) is model
    assert model.folder == tmp_path / "run"
    assert model.iteration == 4
    half = act(model)
    model.learn(total_timesteps=7, progress_bar=False)  # of two environments: four iterations
    assert model.iteration == 8
    assert (act(model) != half).any()
    whole = Model.load(tiny_run)  # the same run, never stopped
    np.testing.assert_array_equal(act(model), act(whole))
    with pytest.raises(UserError, match="all 8 iterations of this run are done"):
        model.learn()


def test_more_iterations_are_evaluated_as_often_as_their_number_asks(
    tiny: dict[str, Any], tmp_path: Path
) -> None:
    fields = {name: value for name, value in tiny.items() if name != "eval_every"}
    model = Model("nclql", "toys:wide", out=tmp_path / "run", **fields)
    assert model.learn(2, progress_bar=False).config.eval_every == 1
    assert model.learn(80, progress_bar=False).config.eval_every == 2


def test_an_interrupted_model_remembers_where_it_was(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model("nclql", "toys:wide", out=str(tmp_path / "run"), **tiny)
    advance = Run.advance

    def interrupted(job: Run) -> StepInfo:
        if job.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(job)

    monkeypatch.setattr(Run, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(iterations=8, progress_bar=False)
    monkeypatch.undo()
    assert model.iteration == 3
    assert model.learn(progress_bar=False).iteration == 8  # to the end of what was asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"iterations": 0}, "at least 1"),
        ({"iterations": 2.5}, "whole number"),
        ({"iterations": "many"}, "whole number"),
        ({"total_timesteps": float("inf")}, "whole number"),
        ({"iterations": 3, "total_timesteps": 3}, "not both"),
        ({"quiet": True}, r"learn\(progress_bar=False\)"),
        ({"log_interval": 4}, "unknown argument of learn.. 'log_interval'"),
        ({"reset_num_timesteps": False}, "learn always goes on"),
        ({"callbacks": []}, r"learn\(callback=\)"),
        ({"callback": 3}, "expected a Callback or a function"),
        ({"callback": lambda _locals, _globals: True}, "returning True stops the run"),
        ({"callback": lrl.callbacks.StopOnReturn}, "expected an object"),
    ],
)
def test_what_learn_does_not_take(words: dict[str, Any], said: str, here: Path) -> None:
    with pytest.raises(UserError, match=said):
        Model("lql", "toys:timed").learn(**words)
    assert not list(here.iterdir())


def test_a_prediction_lies_in_the_tasks_box(model: Model) -> None:
    actions = act(model)
    assert actions.shape == (4, 1) and actions.dtype == np.float32
    assert abs(actions).max() <= 2.0
    many = act(model, np.random.default_rng(1).normal(size=(200, 3)))
    assert abs(many).max() > 1.0  # the task's box is wider than the agent's


def test_one_observation_gives_one_action(model: Model) -> None:
    one = act(model, OBS[2])
    assert one.shape == (1,)
    np.testing.assert_allclose(one, act(model)[2], atol=1e-5)
    np.testing.assert_array_equal(one, act(model, OBS[2].tolist()))


def test_the_modes_differ_in_what_is_random(model: Model) -> None:
    np.testing.assert_array_equal(act(model), act(model, mode="keyed"))
    free = act(model, mode="noise-free")
    np.testing.assert_array_equal(free, act(model, mode="noise-free"))
    drawn = [act(model, deterministic=False) for _ in range(3)]
    assert (drawn[0] != drawn[1]).all() and (drawn[1] != drawn[2]).all()
    assert (free != act(model)).any() and all(abs(a).max() <= 2.0 for a in (free, *drawn))
    with pytest.raises(
        UserError, match="mode is 'mean'; expected one of keyed, sampled, noise-free"
    ):
        model.predict(OBS, mode="mean")  # type: ignore[arg-type]


def test_samples_repeat_with_the_seed(tiny_run: Path) -> None:
    first, second = (Model.load(tiny_run) for _ in range(2))
    for _ in range(2):
        np.testing.assert_array_equal(
            act(first, deterministic=False), act(second, deterministic=False)
        )


def test_each_trained_seed_can_be_asked(model: Model) -> None:
    assert (act(model, seed_index=0) != act(model, seed_index=1)).any()
    for index in (2, -1):
        with pytest.raises(UserError, match="trained seeds: 2"):
            model.predict(OBS, seed_index=index)


def test_an_observation_of_the_wrong_size_is_refused(model: Model) -> None:
    for wrong in (OBS[:, :2], OBS[None], OBS[0, :2], 1.0):
        with pytest.raises(UserError, match=r"expected \(3,\), or \(B, 3\)"):
            model.predict(wrong)


def evaluate_policy(model: Model, env: gym.Env[Any, Any], episodes: int) -> list[float]:
    """What Stable-Baselines3's tool of this name asks of a model, with a vector of one."""
    returns: list[float] = []
    obs, _ = env.reset(seed=0)
    states, starts, total = None, np.ones(1, bool), 0.0
    while len(returns) < episodes:
        alone = not isinstance(obs, dict)
        batch = obs[None] if alone else {name: value[None] for name, value in obs.items()}
        actions, states = model.predict(
            batch, state=states, episode_start=starts, deterministic=True
        )
        obs, reward, terminated, truncated, _ = env.step(actions[0])
        total, starts = total + float(reward), np.array([terminated or truncated])
        if starts[0]:
            returns.append(total)
            (obs, _), total = env.reset(), 0.0
    return returns


def test_it_answers_as_the_tools_of_stable_baselines_ask(model: Model) -> None:
    assert len(evaluate_policy(model, toys.wide(), 2)) == 2


@pytest.mark.slow  # where it is installed: it needs PyTorch
@pytest.mark.filterwarnings("ignore")  # other people's
def test_stable_baselines_evaluates_a_model(model: Model) -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    env = toys.wide()
    env.reset(seed=0)
    returns, lengths = evaluation.evaluate_policy(
        model, env, n_eval_episodes=2, return_episode_rewards=True, warn=False
    )
    assert lengths == [7, 7] and np.isfinite(returns).all()


def test_evaluation_is_repeatable_and_plays_every_seed(model: Model) -> None:
    played = model.evaluate(episodes=3, seed=1)
    assert [(e.seed, e.episode, e.length) for e in played.episodes] == [
        (seed, episode, 7) for seed in (3, 4) for episode in range(3)
    ]
    assert (played.mode, played.iteration) == ("keyed", 8)
    assert model.evaluate(episodes=3, seed=1) == played
    assert model.evaluate(episodes=3, seed=2) != played
    for mode in ("sampled", "noise-free"):
        other = model.evaluate(episodes=3, seed=1, mode=mode)  # type: ignore[arg-type]
        assert other.mode == mode and other.mean != played.mean
        assert other == model.evaluate(episodes=3, seed=1, mode=mode)  # type: ignore[arg-type]
    for wrong in ({"episodes": 0}, {"seed": -1}):
        with pytest.raises(UserError, match="cannot play"):
            model.evaluate(**wrong)  # type: ignore[arg-type]


def test_a_saved_model_acts_the_same_and_leaves_replay_behind(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "small")
    files = [path.name for path in (tmp_path / "small" / "checkpoints" / "000000008").iterdir()]
    assert sorted(files) == ["metadata.json", "state.safetensors"]
    copy = Model.load(tmp_path / "small")
    for index in (0, 1):
        ours, theirs = act(model, seed_index=index), act(copy, seed_index=index)
        np.testing.assert_array_equal(ours, theirs)
    copy.save(tmp_path / "again")
    np.testing.assert_array_equal(act(Model.load(tmp_path / "again")), act(model))


def test_saving_again_replaces_a_model_and_never_a_run(
    model: Model, tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    other = Model("lql", "toys:timed", out=tmp_path / "run", hidden=[8], warmup=200, batch_size=8)
    other.learn(9, progress_bar=False).save(tmp_path / "model")
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(act(Model.load(tmp_path / "model")), act(model))
    for place in (tiny_run, tmp_path / "run"):
        with pytest.raises(UserError, match="already holds a run"):
            model.save(place)
    with pytest.raises(UserError, match=r"saved as a folder: write save\('.*/x'\)"):
        model.save(tmp_path / "x.zip")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        model.save(tmp_path / "file")


def test_saved_files_can_be_read_as_any_other(model: Model, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    model.save(tmp_path / "model")
    ordinary = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {ordinary}


def test_a_saved_model_goes_on_learning_where_its_run_is(
    tiny: dict[str, Any], tiny_run: Path, tmp_path: Path
) -> None:
    first = Model("nclql", "toys:wide", out=tmp_path / "run", **tiny).learn(4, progress_bar=False)
    first.save(tmp_path / "model")
    shutil.copytree(tmp_path / "run", tmp_path / "kept")
    model = Model.load(tmp_path / "model").learn(iterations=4, progress_bar=False)
    assert model.folder == tmp_path / "run"
    np.testing.assert_array_equal(act(model), act(Model.load(tiny_run)))
    late = Model.load(tmp_path / "model")
    with pytest.raises(UserError, match=r"of iteration 4, and its run in .* is at 8"):
        late.learn(iterations=1)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(UserError, match=r"the run it was saved from is not in .* any more"):
        late.learn(iterations=1)
    other = Model("nclql", "toys:wide", out=tmp_path / "run", **(tiny | {"seed": 9}))
    other.learn(4, progress_bar=False)
    with pytest.raises(UserError, match="holds another run by now"):
        late.learn(iterations=1)


def test_loading_builds_no_environment(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = tiny | {"warmup": 20, "seeds": 1}
    model = Model("nclql", lambda: toys.wide(), out=tmp_path / "run", **fields)
    model.learn(2, progress_bar=False)
    monkeypatch.setattr(toys, "wide", None)
    loaded = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(act(loaded), act(model))
    for call in (loaded.evaluate, lambda: loaded.learn(1)):
        with pytest.raises(UserError, match=r"Model\.load\(DIR, env=\.\.\.\)"):
            call()
    monkeypatch.undo()
    again = Model.load(tmp_path / "run", env=toys.wide)
    assert again.evaluate(episodes=1).mean == model.evaluate(episodes=1).mean
    assert again.learn(1, progress_bar=False).iteration == 3


def test_a_folder_of_before_spaces_were_saved(tiny_run: Path, model: Model, tmp_path: Path) -> None:
    old = shutil.copytree(tiny_run, tmp_path / "old")
    (old / "spaces.json").unlink()
    np.testing.assert_array_equal(act(Model.load(old)), act(model))
    config = RunConfig.read(old / "config.json")
    dataclasses.replace(config, env="toys:gone").write(old / "config.json")
    with pytest.raises(UserError, match=r"toys:gone.*env=\.\.\."):
        Model.load(old, trust=True)
    (old / "spaces.json").write_text("{}")
    with pytest.raises(UserError, match="damaged"):
        Model.load(old)


def test_environments_in_every_form(tiny_run: Path, model: Model, here: Path) -> None:
    def kept(env: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
        config = Model("lql", env, **fields).config
        return config.env, config.env_kwargs

    assert kept(toys.timed) == ("toys:timed", {})
    assert kept(functools.partial(toys.Clock, length=5)) == ("toys:Clock", {"length": 5})
    assert kept("toys:Clock", env_kwargs={"length": 5}) == ("toys:Clock", {"length": 5})
    pendulum = gym.make("Pendulum-v1", g=5.0)
    assert kept(pendulum) == ("Pendulum-v1", {"g": 5.0})
    assert kept(pendulum.spec) == ("Pendulum-v1", {"g": 5.0})
    assert kept(gym.make_vec("Pendulum-v1", 2)) == ("Pendulum-v1", {})
    longer = gym.make("Pendulum-v1", max_episode_steps=9)
    assert kept(longer) == ("Pendulum-v1+own", {})  # no name makes it again
    with pytest.raises(UserError, match="env_kwargs is 3; expected a dict"):
        kept("toys:Clock", env_kwargs=3)
    with pytest.raises(UserError, match="env is 3"):
        kept(3)
    same = Model.load(tiny_run, env=toys.wide)
    np.testing.assert_array_equal(act(same), act(model))


def test_keyword_arguments_reach_the_environment_and_are_kept(here: Path) -> None:
    small = {"hidden": [8], "warmup": 20, "batch_size": 8, "eval_episodes": 1, "eval_every": 9}
    model = Model("lql", "toys:Clock", env_kwargs={"length": 3, "bound": 2.0}, **small)
    model.learn(2, progress_bar=False)
    assert model.evaluate(episodes=1).episodes[0].length == 3
    assert Model.load(str(model.folder)).evaluate(episodes=1).episodes[0].length == 3
    assert float(model.spaces.action_space.high[0]) == 2.0
    bad = Model("lql", "Pendulum-v1", env_kwargs={"gravity": 3}, **small)
    with pytest.raises(UserError, match=r"cannot build 'Pendulum-v1'.*gravity"):
        bad.learn(2)
    with pytest.raises(UserError, match="pass a function"):
        Model("lql", "toys:Clock", env_kwargs={"length": object()}, **small).learn(2)


def test_default_folders_do_not_collide(here: Path) -> None:
    small = {"hidden": [8], "warmup": 20, "batch_size": 8, "eval_episodes": 1, "eval_every": 9}
    models = [Model("lql", "toys:ending", step_size=s, **small) for s in (1e-3, 1e-4)]
    places = [str(model.learn(1, progress_bar=False).folder) for model in models]
    assert places == ["runs/lql-toys-ending-0", "runs/lql-toys-ending-0-2"]
    assert [Model.load(p).config.out for p in places] == places
    assert models[0].learn(1, progress_bar=False).iteration == 2
    anew = Model("lql", "toys:ending", overwrite=True, **small).learn(1, progress_bar=False)
    assert str(anew.folder) == places[0] and Model.load(places[0]).iteration == 1
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        Model("lql", "toys:ending", out=places[0], **small).learn(1)


def test_a_folder_whose_run_failed_in_warm_up_is_used_again(here: Path) -> None:
    small = {"hidden": [8], "batch_size": 8, "eval_episodes": 1, "eval_every": 9}
    for _ in range(2):
        with pytest.raises(RuntimeError, match="wheel"):
            Model("lql", "toys:breaking", warmup=500, **small).learn(1, progress_bar=False)
    assert [path.name for path in (here / "runs").iterdir()] == ["lql-toys-breaking-0"]
    assert RunFolder("runs/lql-toys-breaking-0").is_untouched()


def test_a_strangers_environment_from_training_to_another_process(here: Path) -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.TimeLimit(toys.Stranger(), 20)

    small = {"hidden": [8], "num_steps": 3, "warmup": 60, "batch_size": 8, "eval_episodes": 2}
    model = Model("lql", make, **small).learn(total_timesteps=30, progress_bar=False)
    model.save("stranger")
    obs, _ = make().reset(seed=0)
    action, _ = model.predict(obs)
    assert make().action_space.contains(action)
    many, _ = model.predict({name: np.stack([value] * 3) for name, value in obs.items()})
    assert many.shape == (3, 2)
    assert np.isfinite(evaluate_policy(model, make(), 2)).all()
    assert model.evaluate(episodes=2).mean <= 0
    np.savez("obs.npz", **obs)
    program = (
        "import numpy as np, langevinrl as lrl; model = lrl.Model.load('stranger');"
        "action, _ = model.predict(dict(np.load('obs.npz'))); print(action.tobytes().hex())"
    )
    paths = os.pathsep.join(path for path in sys.path if path and not path.endswith("tests"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert done.stdout.strip() == action.tobytes().hex()


def test_a_model_that_has_not_learned_says_so(tmp_path: Path) -> None:
    fresh = Model("lql", "toys:timed")
    for call in (fresh.evaluate, lambda: fresh.predict(OBS), lambda: fresh.save(tmp_path)):
        with pytest.raises(UserError, match="not learned yet"):
            call()


@pytest.mark.parametrize(
    ("agent", "fields", "said"),
    [
        ("nclqll", {}, "did you mean nclql"),
        ("NCLQL", {}, "did you mean nclql"),
        ("NC-LQL", {}, "did you mean nclql"),
        ("MlpPolicy", {}, "the agent's name comes first"),
        ("toys:nothing", {}, "cannot be loaded"),
        ("toys:wide", {}, "is no agent"),
        ("nclql", {"batchsize": 3}, "did you mean batch_size"),
        ("nclql", {"sigma_maxx": 3}, "did you mean sigma_max"),
        ("nclql", {"spec": None}, "unknown field 'spec'"),
        ("nclql", {"w": 3}, "here it is inverse_temperature"),
        ("nclql", {"lr": 3}, "here it is learning_rate"),
        ("sac", {"lr": 3}, "critic_learning_rate or actor_learning_rate"),
        ("nclql", {"tau": 3}, "here it is target_rate"),
        ("nclql", {"buffer_size": 3}, "here it is capacity"),
        ("nclql", {"learning_starts": 3}, "here it is warmup"),
        ("nclql", {"ent_coef": 3}, "here it is inverse_temperature"),
        ("sac", {"ent_coef": 3}, "here it is initial_alpha"),
        ("nclql", {"train_freq": 3}, "here it is updates_per_iteration"),
        ("nclql", {"gradient_steps": 3}, "here it is updates_per_iteration"),
        ("nclql", {"total_timesteps": 3}, r"iterations.*learn\(total_timesteps=\)"),
        ("nclql", {"policy": "MlpPolicy"}, "no policy class"),
        ("nclql", {"verbose": 1}, "progress_bar=False"),
        ("nclql", {"device": "cpu"}, "JAX_PLATFORMS"),
    ],
)
def test_unknown_names_are_refused_at_once_and_say_what_to_write(
    agent: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said) as caught:
        Model(agent, "toys:timed", **fields)
    assert "--" not in str(caught.value)  # this is Python


def test_bad_values_are_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    out = tmp_path / "run"
    wrong: list[dict[str, Any]] = [
        {"gamma": 2.0},
        {"iterations": 0},
        {"batch_size": 0},
        {"hidden": []},
    ]
    for fields in wrong:
        with pytest.raises(UserError, match="expected"):
            Model("lql", "toys:timed", out=str(out), **({"iterations": 1} | fields)).learn()
    with pytest.raises(UserError, match="warmup=3 is less than one batch"):
        Model("lql", "toys:timed", out=str(out), warmup=3).learn(1)
    assert not out.exists()


def test_what_cannot_be_loaded(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        Model.load(tmp_path)
    broken = shutil.copytree(tiny_run, tmp_path / "broken")
    (weights,) = broken.glob("checkpoints/*/state.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(UserError, match="damaged"):
        Model.load(broken)
    weights.unlink()
    with pytest.raises(UserError, match="lacks state"):
        Model.load(broken)
    shutil.rmtree(broken / "checkpoints")
    with pytest.raises(UserError, match="no checkpoint"):
        Model.load(broken)
    with pytest.raises(UserError, match="was trained on"):
        Model.load(tiny_run, env=lambda: toys.Echo(toys.timed().action_space))


def test_the_public_names_are_there() -> None:
    for name in lrl.__all__:
        assert getattr(lrl, name) is not None
    assert lrl.callbacks.StopOnReturn and lrl.samplers.sample
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        lrl.modle  # noqa: B018
