"""Tests of factories: every form of an environment becomes a function, or an error."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys

from langevinrl.envs import factory
from langevinrl.envs.build import task_sizes
from langevinrl.envs.factory import as_factory, name_of
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError


def gravity(env: gym.Env[Any, Any]) -> Any:
    return env.get_wrapper_attr("g")


def limit(env: gym.Env[Any, Any]) -> Any:
    assert env.spec is not None
    return env.spec.max_episode_steps


def refused(env: Any) -> str:
    with pytest.raises(UserError) as caught:
        as_factory(env)
    return str(caught.value)


def weighted(pay: float = 1.0) -> gym.Env[Any, Any]:
    return gym.wrappers.TransformReward(toys.timed(), partial(np.multiply, pay))


def test_an_id_a_spec_and_an_instance_make_new_environments() -> None:
    instance = gym.make("Pendulum-v1", g=3.0, max_episode_steps=7)
    assert instance.spec is not None
    for env in (instance, instance.spec):
        make = as_factory(env)
        assert name_of(make) == name_of(env) == "Pendulum-v1"
        first, second = make(), make()
        assert first.unwrapped is not second.unwrapped and first.unwrapped is not instance.unwrapped
        assert gravity(first) == 3.0
    assert limit(as_factory(instance)()) == 7
    assert gravity(as_factory("Pendulum-v1", {"g": 5.0})()) == 5.0
    assert gravity(as_factory(instance, {"g": 5.0})()) == 5.0


def test_wrappers_of_an_instance_are_made_again() -> None:
    wrapped = gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(-3), np.float32(3))
    assert isinstance(as_factory(wrapped)(), gym.wrappers.RescaleAction)


def test_an_instance_that_cannot_be_made_again_raises() -> None:
    assert "Clock" in refused(toys.Clock()) and "pass a function" in refused(toys.Clock())
    assert "Memory" in refused(toys.Memory(gym.make("Pendulum-v1")))
    assert "pass a function" in refused(gym.make_vec("Pendulum-v1", 2))
    assert "expected a Gymnasium id" in refused(3)


def test_training_opens_no_windows() -> None:
    spec = gym.spec("Pendulum-v1")
    spec = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    spec.kwargs["render_mode"] = "human"
    assert as_factory(spec)().render_mode is None


def test_a_factory_that_returns_one_object_raises() -> None:
    env = toys.timed()
    with pytest.raises(UserError, match="returns the same SavedClock twice"):
        VectorEnv(lambda: env, [0], 2)
    other = toys.timed()
    kept = VectorEnv(lambda: other, [0], 1)
    with pytest.raises(UserError, match="returns the same"):  # training's and evaluation's
        VectorEnv(lambda: other, [0], 1)
    kept.close()


def test_kwargs_reach_a_function_and_keep_its_name() -> None:
    make = as_factory("envs.test_factory:weighted" if __package__ else f"{__name__}:weighted",
                      {"pay": 3.0})  # fmt: skip
    assert name_of(make).endswith(":weighted")
    envs = VectorEnv(make, [0], 1)
    envs.reset()
    assert envs.step(np.zeros((1, 1, 1), np.float32)).reward.item() == 3.0
    with pytest.raises(UserError, match="unexpected keyword argument 'gg'"):
        task_sizes("Pendulum-v1", {"gg": 1})
    assert task_sizes("Pendulum-v1", {"g": 1.0}).obs_dim == 3


@pytest.mark.parametrize(
    ("env", "package", "extra"),
    [
        ("FetchReach-v4", "gymnasium-robotics", "langevinrl[robotics]"),
        ("dm_control/cheetah-run-v0", "Shimmy", "langevinrl[dm-control]"),
    ],
)
@pytest.mark.parametrize("error", [ModuleNotFoundError, AttributeError])
def test_a_package_that_is_missing_or_does_not_load_is_named(
    env: str, package: str, extra: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Any:
        raise error("mjtSomething\nand a page more" if error is AttributeError else "no module")

    monkeypatch.setattr(factory.importlib, "import_module", fail)
    monkeypatch.setattr(gym, "registry", {"Reacher-v4": None})
    said = refused(env)
    assert package in said and extra in said and "newer MuJoCo" in said
    assert "Reacher-v4" not in said and "a page more" not in said
    assert error is ModuleNotFoundError or "mjtSomething" in said
