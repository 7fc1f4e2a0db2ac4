"""The NumPy loader alone: it imports nothing else and trusts no file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from export_cases import policy_of

from langevinrl.export import NumpyPolicy, files, numpy_policy

WEIGHTS = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
OBS = np.arange(5, dtype=np.float32)


@pytest.fixture(scope="session")
def content() -> bytes:
    return files.to_numpy(policy_of(lambda x: jnp.tanh(x @ WEIGHTS)))


def changed(content: bytes, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> BytesIO:
    """Return a file whose header and arrays a function has changed."""
    with np.load(BytesIO(content)) as file:
        arrays = {name: file[name].copy() for name in file.files}
    header = json.loads(arrays.pop("program").tobytes())
    change(header, arrays)
    arrays["program"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    stored = BytesIO()
    np.savez(stored, **arrays)
    return BytesIO(stored.getvalue())


def test_loader_runs_where_there_is_no_jax(content: bytes, tmp_path: Path) -> None:
    source = Path(numpy_policy.__file__).read_text()
    assert len(source.splitlines()) < 250
    (tmp_path / "numpy_policy.py").write_text(source)
    (tmp_path / "policy.npz").write_bytes(content)
    program = (
        "import sys; sys.modules['jax'] = sys.modules['langevinrl'] = None\n"
        "import numpy as np; from numpy_policy import NumpyPolicy\n"
        "print(NumpyPolicy('policy.npz')(np.arange(5)).tolist())\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    np.testing.assert_allclose(json.loads(done.stdout), np.tanh(OBS @ WEIGHTS), atol=1e-6)


def set_nan(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["float32"][3] = np.nan


def shorten(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["float32"] = arrays["float32"][:-1]


def edit(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    return lambda header, arrays: header.update(fields)


def instruct(*instruction: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Return a change that puts another instruction first; value 0 is the observation."""
    return lambda header, arrays: header["instructions"].insert(0, instruction)


def describe(**fields: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    return lambda header, arrays: header["metadata"].update(fields)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_nan, "NaN or infinite"),
        (shorten, "reshape|add up"),
        (edit(format="langevinrl policy 1"), "its format is not"),
        (edit(instructions=7), "not iterable"),
        (edit(instructions=[["Abs"]]), "unpack"),
        (edit(constants=[["float64", [15]]]), "float64"),
        (edit(constants=[["float32", [-1, 3]]]), "negative size"),
        (edit(output=99), "IndexError"),
        (instruct("__import__", [0]), "__import__"),
        (instruct("Abs", [77]), "undefined value"),
        (instruct("Abs", [-1]), "undefined value"),
        (instruct("Abs", ["obs"]), "TypeError"),
        (instruct("Add", [0, 0, 0]), "number of arguments"),
        (instruct("Reshape", [0], [3, 3]), "reshape"),
        (instruct("Expand", [0], [10**9, 5]), "too many"),
        (instruct("Cast", [0], "O"), "'O'"),
        (instruct("Slice", [0], [[0, 5, 0]]), "step"),
        (describe(obs_dim=10**12), "too many"),
        (describe(obs_dim="many"), "TypeError"),
        (describe(noise={"laplace": [3]}), "unknown distribution"),
        (describe(action_shape=[4]), "actions have shape"),
        (describe(action_dtype="U8"), "floating-point"),
    ],
)
def test_damaged_program_is_refused_in_one_sentence(
    change: Callable[..., Any], problem: str, content: bytes
) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        NumpyPolicy(changed(content, change))
    assert "cannot read a policy from" in str(caught.value) and "\n" not in str(caught.value)


def test_files_of_another_kind_are_refused(content: bytes, tmp_path: Path) -> None:
    pickled = BytesIO()
    np.savez(pickled, program=np.array([{"a": 1}], dtype=object))
    nested = BytesIO()
    np.savez(nested, program=np.frombuffer(b"[" * 10**6, np.uint8))
    for stored in (b"", b"text", content[: len(content) // 2], pickled, nested):
        file = BytesIO(stored if isinstance(stored, bytes) else stored.getvalue())
        with pytest.raises(ValueError, match="cannot read a policy from"):
            NumpyPolicy(file)
    with pytest.raises(FileNotFoundError):
        NumpyPolicy(tmp_path / "none.npz")


def test_wrong_inputs_are_named(content: bytes) -> None:
    policy = NumpyPolicy(BytesIO(content))
    with pytest.raises(ValueError, match=r"obs has shape \(4,\); expected \(5,\) or \(B, 5\)"):
        policy(np.zeros(4))
    with pytest.raises(ValueError, match=r"noise has the parts \['normal'\]; expected \[\]"):
        policy(OBS, {"normal": np.zeros(3)})


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0])
def test_erf_has_the_digits_of_float32(scale: float) -> None:
    from math import erf

    x = np.linspace(-scale, scale, 101, dtype=np.float32)
    found = numpy_policy.erf(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [erf(value) for value in x], atol=4e-7)
