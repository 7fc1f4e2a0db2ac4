"""Runs of the paper's studies, and of their parts."""

from __future__ import annotations

import pytest

from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig
from langevinrl.studies import TRAINED, load_study
from langevinrl.studies.study import AGENTS, COUNTED, Extent, runs
from langevinrl.sweeps.grid import job_id
from langevinrl.sweeps.start import arrange

PROGRESS = (0.2, 0.4, 0.6, 0.8, 1.0)


def of(name: str, **extent: object) -> list[RunConfig]:
    return runs(load_study(name), Extent(**extent))  # type: ignore[arg-type]  # one dict of fields


def test_main_comparison_is_the_papers() -> None:
    assert set(load_study("mujoco").tasks) == set(PAPER_ITERATIONS)
    found = of("mujoco", tasks=("Hopper", "Reacher"))
    assert len(found) == 10 * 2 * 5 == len({job_id(config) for config in found})
    assert {config.agent for config in found} == set(AGENTS)
    assert {config.env for config in found} == {"Hopper-v4", "Reacher-v4"}
    assert {config.seed for config in found} == {100, 200, 300, 400, 500}
    for config in found:
        assert config.iterations == PAPER_ITERATIONS[config.env.removesuffix("-v4")]
        # At scale 1 a run equals that of `langevinrl train --preset paper`.
        plain = RunConfig(config.env, agent=config.agent, seed=config.seed, preset="paper")
        assert job_id(config) == job_id(plain.resolved())


def test_single_draw_sets_best_of_one_for_every_method() -> None:
    for name, draws in (("single-draw", {1}), ("mujoco", {1, 32})):
        assert {run.hyperparameters["best_of"] for run in of(name, seeds=1)} == draws


def test_short_runs_have_one_draw_and_the_preset_short() -> None:
    assert len(load_study("short").tasks) == 6
    found = of("short", tasks=("Ant",))
    assert len(found) == 11 * 3 and {config.agent for config in found} == set(METHODS)
    assert {config.seed for config in found} == {100, 101, 102}
    assert {config.hyperparameters["best_of"] for config in found} == {1}
    for config in found:
        assert config.preset == "short" and config.batch_size == 64 and config.reward_norm
        assert (config.iterations, config.eval_every, config.eval_episodes) == (40_000, 4_000, 5)
        plain = RunConfig(config.env, config.agent, preset="short", iterations=40_000).resolved()
        assert config.hyperparameters == plain.hyperparameters | {"best_of": 1}


def test_two_seeds_of_everything_come_before_the_third_of_anything() -> None:
    seeds = [config.seed for config in of("short", tasks=("Ant", "Hopper"))]
    assert set(seeds[: 11 * 2 * 2]) == {100, 101} and set(seeds[11 * 2 * 2 :]) == {102}


def test_ablations_have_the_papers_values_and_the_default() -> None:
    splits = {(c.hyperparameters["steps_per_level"], c.hyperparameters["num_levels"])
              for c in of("splits")}  # fmt: skip
    assert {t * levels for t, levels in splits} == {5, 10, 20, 50, 100} and (5, 1) in splits
    levels = [config.hyperparameters for config in of("levels")]
    assert {values["sigma_max"] for values in levels} == {0.1, 1.0, 10.0}
    for name in ("splits", "levels", "temperature"):
        found = of(name)
        assert {config.agent for config in found} == {"nclql"}
        assert {config.seed for config in found} == {100, 200, 300}
        default = RunConfig("HalfCheetah-v4", seed=100, preset="paper").resolved()
        assert job_id(default) in {job_id(config) for config in found}


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("scale", [0.1, 0.01, 0.001])
def test_scaled_runs_are_evaluated_at_the_papers_points(name: str, scale: float) -> None:
    tasks = ("HalfCheetah", "Reacher")
    for config in of(name, scale=scale, seeds=1, tasks=tasks):
        assert config.iterations and config.eval_every
        evaluated = {*range(0, config.iterations + 1, config.eval_every), config.iterations}
        assert all(round(p * config.iterations) in evaluated for p in PROGRESS)


def test_scale_shortens_runs_warm_up_delays_and_decays_equally() -> None:
    whole = {(c.agent, c.env): c for c in of("mujoco", seeds=1)}
    counted = set()
    for tenth in of("mujoco", seeds=1, scale=0.1):
        full = whole[tenth.agent, tenth.env]
        assert tenth.iterations == (full.iterations or 0) // 10 and tenth.warmup == 3_000
        changed = {
            name for name, v in full.hyperparameters.items() if tenth.hyperparameters[name] != v
        }
        assert changed == {name for name in COUNTED if name in full.hyperparameters}
        for name in changed:
            assert tenth.hyperparameters[name] == full.hyperparameters[name] // 10
        counted |= changed
    assert counted == set(COUNTED)


def test_replay_buffer_holds_every_transition_up_to_the_papers_capacity() -> None:
    for config in of("mujoco", seeds=1, scale=0.01):
        seen = 5 * (config.warmup_steps + (config.iterations or 0))
        assert config.capacity == min(1_000_000, seen)


def test_rehearsal_is_small_and_has_two_seeds_in_one_process() -> None:
    found = of("mujoco", scale=0.001, tasks=("Hopper", "Reacher"))
    assert len(found) == 40 and len(arrange(found, "auto")) == 20
    assert {config.iterations for config in found} == {1_000, 200}
    assert max(config.hyperparameters["best_of"] for config in found) == 4
    # From scale 0.01 on an iteration is the paper's.
    learning = of("mujoco", scale=0.01, seeds=1, tasks=("Hopper",))
    assert {c.hyperparameters["best_of"] for c in learning} == {1, 32}
    assert {c.batch_size for c in learning} == {256}


def test_iterations_change_only_the_length() -> None:
    (cut,) = of("splits", iterations=20_000, tasks=("HalfCheetah-v4",), seeds=1, cases=(1,))
    assert (cut.iterations, cut.warmup, cut.eval_episodes) == (20_000, 30_000, 20)
    assert cut.hyperparameters["num_levels"] == 5


def test_part_of_a_study_can_be_selected() -> None:
    found = of("mujoco", agents=("sac",), tasks=("Hopper", "Ant"), seeds=7, versions="v5")
    assert len(found) == 14 and {config.env for config in found} == {"Hopper-v5", "Ant-v5"}
    assert {config.seed for config in found} == {100, 200, 300, 400, 500, 600, 700}


@pytest.mark.parametrize(
    ("extent", "message"),
    [
        ({"scale": 0.0}, "more than 0, at most 1"),
        ({"scale": 2.0}, "more than 0, at most 1"),
        ({"seeds": 0}, "at least 1"),
        ({"iterations": 0}, "at least 1"),
        ({"agents": ("sak",)}, "did you mean sac"),
        ({"tasks": ("Hoper",)}, "did you mean Hopper"),
        ({"cases": (2,)}, "has 1, from 1"),
    ],
)
def test_wrong_extents_are_rejected(extent: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        of("mujoco", **extent)


def test_unknown_study_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"did you mean mujoco\?.*single-draw"):
        load_study("mujocoo")
