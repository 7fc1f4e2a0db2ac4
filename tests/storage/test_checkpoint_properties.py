"""For all arrays and tables: saved and loaded they are the same; for all bytes: a plain answer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fuzz_reader
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import load_file, save_file

from langevinrl.errors import UserError
from langevinrl.storage.arrays import KINDS, pieces, read_arrays
from langevinrl.storage.checkpoint import CheckpointData, load, save
from langevinrl.storage.files import write_new
from langevinrl.storage.folder import RunFolder

Arrays = dict[str, np.ndarray]
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name != "__metadata__"
)
one_array = st.sampled_from(sorted(KINDS.values())).flatmap(
    lambda kind: arrays_of.arrays(
        np.dtype(kind), arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    )
)
groups = st.dictionaries(names, one_array, max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names
tables = st.dictionaries(
    names,
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=4,
)
few = settings(max_examples=30, deadline=None, database=None)


def assert_same(one: Arrays, other: Arrays) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array.shape, array.dtype) == (other[name].shape, other[name].dtype)
        assert array.tobytes() == other[name].tobytes()


@few
@given(groups, groups, tables, tables)
def test_any_checkpoint_is_restored_unchanged(
    state: Arrays, replay: Arrays, metadata: dict[str, Any], config: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        save(folder, 3, CheckpointData({"state": state, "replay": replay}, metadata, config))
        found = load(folder)
        assert found.metadata == metadata and found.config == config
        assert_same(found.arrays["state"], state)
        assert_same(found.arrays["replay"], replay)


@few
@given(groups)
def test_files_are_compatible_with_the_safetensors_package(arrays: Arrays) -> None:
    with tempfile.TemporaryDirectory() as place:
        ours, theirs = Path(place) / "ours", Path(place) / "theirs"
        write_new(ours, pieces(arrays))
        save_file(arrays, theirs)
        assert_same(load_file(ours), arrays)
        assert_same(read_arrays(theirs), arrays)


def test_arrays_that_are_not_contiguous_are_written_correctly(tmp_path: Path) -> None:
    ring = np.arange(2 * 1_500_000 * 2, dtype=np.float32).reshape(2, 1_500_000, 2)
    parts = {"rows": ring[:, :1_300_000], "turned": ring[:, :9].T, ">": np.arange(3, dtype=">f8")}
    write_new(tmp_path / "file", pieces(parts))
    for mapped in (False, True):
        found = read_arrays(tmp_path / "file", mapped)
        for name, array in parts.items():
            np.testing.assert_array_equal(found[name], array)
        assert found["rows"].flags.writeable is not mapped


def test_unsupported_dtype_is_refused_by_name(tmp_path: Path) -> None:
    for array in (np.array(["text"]), np.array([None])):
        with pytest.raises(UserError, match="goal has the dtype"):
            save(RunFolder(tmp_path), 1, CheckpointData({"envs": {"goal": array}}, {}))
        assert not list((tmp_path / "checkpoints").glob("0*"))


@few
@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        fuzz_reader.check(content, Path(place))
        fuzz_reader.check(len(content).to_bytes(8, "little") + content, Path(place))


@few
@given(st.sampled_from(fuzz_reader.corpus()), st.randoms(use_true_random=False))
def test_mutated_files_are_read_or_refused(path: Path, draw: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        fuzz_reader.check(fuzz_reader.mutate(path.read_bytes(), draw), Path(place))


@pytest.mark.parametrize("path", fuzz_reader.corpus(), ids=lambda path: path.name)
def test_files_of_the_corpus_are_read_or_refused(path: Path, tmp_path: Path) -> None:
    fuzz_reader.check(path.read_bytes(), tmp_path)
