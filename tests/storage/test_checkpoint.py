"""A checkpoint is whole or not there; what is damaged or foreign is refused in plain words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import load_file

from langevinrl.errors import UserError
from langevinrl.learner import Learner, init_learner
from langevinrl.storage import checkpoint
from langevinrl.storage.checkpoint import CheckpointData, fill_leaves, load, name_leaves, save
from langevinrl.storage.files import FileDigest, write_new
from langevinrl.storage.folder import CHECKPOINTS, RunFolder


def saved(value: float) -> CheckpointData:
    arrays = {"a": np.full((2, 3), value, np.float32), "count": np.array(7, np.int32)}
    return CheckpointData(
        {"state": arrays, "envs": {"0/qpos": np.arange(3.0)}}, {"iteration": value}
    )


def crash(*args: Any) -> None:
    raise KeyboardInterrupt


def test_load_reads_only_the_groups_asked_for(tmp_path: Path) -> None:
    save(RunFolder(tmp_path), 1, saved(1.0))
    assert load(RunFolder(tmp_path), groups=["envs"]).arrays.keys() == {"envs"}
    with pytest.raises(UserError, match="lacks replay"):
        load(RunFolder(tmp_path), groups=["state", "replay"])


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_only_the_newest_checkpoints_are_kept(tmp_path: Path, keep: int) -> None:
    done: list[str] = []
    for iteration in (5, 50, 1_000_000, 1_000_000, 2_000_000_000):  # one of them saved again
        save(RunFolder(tmp_path), iteration, saved(float(iteration)), keep=keep)
        done = [*[name for name in done if name != f"{iteration:09d}"], f"{iteration:09d}"]
        found = {path.name for path in (tmp_path / CHECKPOINTS).iterdir()}
        assert found == set(done[-keep:])
    assert load(RunFolder(tmp_path)).metadata == {"iteration": 2e9}


def test_later_damaged_checkpoints_are_removed_by_the_next_save(tmp_path: Path) -> None:
    for iteration in (10, 20):
        save(RunFolder(tmp_path), iteration, saved(float(iteration)), keep=2)
    save(RunFolder(tmp_path), 15, saved(15.0), keep=2)  # as 20 was found damaged
    assert sorted(path.name for path in (tmp_path / CHECKPOINTS).iterdir()) == [
        "000000010", "000000015",
    ]  # fmt: skip


def test_crash_while_writing_keeps_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(RunFolder(tmp_path), 1, saved(1.0))

    def half(path: Path, pieces: Any) -> FileDigest:
        digest = write_new(path, pieces)
        if path.stem == "envs":  # the second of two
            path.write_bytes(path.read_bytes()[:20])
            crash()
        return digest

    monkeypatch.setattr(checkpoint, "write_new", half)
    for iteration in (1, 2):  # over itself, and beside it
        with pytest.raises(KeyboardInterrupt):
            save(RunFolder(tmp_path), iteration, saved(2.0))
        assert load(RunFolder(tmp_path)).metadata == {"iteration": 1.0}
        assert load(RunFolder(tmp_path)).arrays["state"]["a"][0, 0] == 1.0
    assert list((tmp_path / CHECKPOINTS).glob(".*"))  # a partial one is left behind, and ignored
    monkeypatch.undo()
    save(RunFolder(tmp_path), 3, saved(3.0))
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == ["000000003"]


@pytest.mark.parametrize("fatal", [0, 1])
def test_crash_between_the_renames_keeps_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int
) -> None:
    """Saved again at the same iteration, as after a signal."""
    save(RunFolder(tmp_path), 4, saved(1.0))
    real, calls = Path.rename, []

    def rename(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) > fatal:
            crash()
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        save(RunFolder(tmp_path), 4, saved(2.0))
    monkeypatch.undo()
    assert load(RunFolder(tmp_path)).metadata == {"iteration": 1.0}
    save(RunFolder(tmp_path), 4, saved(3.0))
    assert load(RunFolder(tmp_path)).metadata == {"iteration": 3.0}
    assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == ["000000004"]


def test_checkpoint_is_preferred_to_the_spare_of_its_iteration(tmp_path: Path) -> None:
    save(RunFolder(tmp_path), 4, saved(1.0)).rename(tmp_path / CHECKPOINTS / "000000004.old")
    (tmp_path / "elsewhere").mkdir()
    folder = save(RunFolder(tmp_path / "elsewhere"), 4, saved(2.0))
    folder.rename(tmp_path / CHECKPOINTS / "000000004")
    assert load(RunFolder(tmp_path)).metadata == {"iteration": 2.0}


def test_only_folders_with_checkpoint_names_are_removed(tmp_path: Path) -> None:
    """A user's `checkpoints/best`, another program's models, a link to another place."""
    place, other = tmp_path / CHECKPOINTS, tmp_path / "other"
    (place / "best").mkdir(parents=True)
    (place / "epoch-12").mkdir()
    (place / "12").mkdir()
    (place / ".keep.partial").mkdir()
    (place / "000000001.txt").touch()
    other.mkdir()
    (other / "precious").touch()
    (place / "000000002").symlink_to(other)
    before = sorted(path.name for path in place.iterdir())
    for iteration in (5, 6):
        save(RunFolder(tmp_path), iteration, saved(1.0))
    assert sorted(path.name for path in place.iterdir()) == sorted([*before, "000000006"])
    assert (other / "precious").exists()


def test_run_without_a_checkpoint_gives_one_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="no checkpoint"):
            load(RunFolder(folder))
    (tmp_path / CHECKPOINTS / ".000000009.partial").mkdir(parents=True)
    with pytest.raises(UserError, match="no checkpoint"):
        load(RunFolder(tmp_path))


def test_nothing_is_pickled(tiny_run: Path) -> None:
    """A run's checkpoint is JSON and safetensors, whose header is JSON as well."""
    folder = max((tiny_run / "checkpoints").iterdir())
    arrays = ["envs.safetensors", "replay.safetensors", "state.safetensors"]
    files = sorted(path.name for path in folder.iterdir())
    assert files == sorted([*arrays, "manifest.json", "metadata.json"])
    json.loads((folder / "metadata.json").read_text())
    json.loads((folder / "manifest.json").read_text())
    for path in folder.glob("*.safetensors"):
        assert load_file(path)  # the format's own library reads it
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        ends = [entry["data_offsets"][1] for entry in header.values()]
        assert 8 + size + max(ends) == len(content)  # all of it is header and numbers


def learner() -> Learner:
    return init_learner({"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}, optax.adam(1e-3))


def test_pytree_is_restored_unchanged(tmp_path: Path) -> None:
    state = learner()
    save(RunFolder(tmp_path), 1, CheckpointData({"state": name_leaves(state)}, {}))
    back = fill_leaves(learner(), load(RunFolder(tmp_path)).arrays["state"])
    assert isinstance(back, Learner)
    for ours, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(back), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)  # scalars stay scalars
        np.testing.assert_array_equal(ours, theirs)


def test_names_are_copies_on_the_host() -> None:
    arrays = name_leaves({"w": jnp.ones(2)})
    arrays["['w']"][0] = 5.0  # would fail on a view of a device buffer
    assert arrays["['w']"].tolist() == [5.0, 1.0]


def test_weights_of_another_size_or_agent_are_refused() -> None:
    arrays = name_leaves(learner())
    other = init_learner({"w": jnp.ones((4, 2)), "b": jnp.zeros(2)}, optax.adam(1e-3))
    with pytest.raises(UserError, match=r"\['w'\] is float32\(3, 2\); expected float32\(4, 2\)"):
        fill_leaves(other, arrays)
    with pytest.raises(UserError, match=r"lacks .*\['v'\].*another agent or version"):
        fill_leaves(init_learner({"v": jnp.ones(1)}, optax.adam(1e-3)), arrays)
    with pytest.raises(UserError, match=r"float32\(2,\); expected int32\(2,\)"):
        fill_leaves({"b": jnp.zeros(2, jnp.int32)}, {"['b']": np.zeros(2, np.float32)})
