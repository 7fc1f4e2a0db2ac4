"""Every form of every method acts as its evaluation does, given the same noise."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import jax
import jax.export
import numpy as np
import pytest
from policies_by_case import CASES, OBS, described, expected, noise_of

from langevinrl.export import NumpyPolicy, files, numpy_policy

close = {"rtol": 0, "atol": 1e-4}


@pytest.mark.parametrize("case", CASES)
def test_numpy_agrees(case: str) -> None:
    policy = NumpyPolicy(BytesIO(files.to_numpy(described(case))), seed=0)
    noise = noise_of(case)
    np.testing.assert_allclose(policy(OBS, noise), expected(case), **close)
    np.testing.assert_allclose(policy(OBS[2], noise[2]), expected(case)[2], **close)
    # Its own noise is of that shape, and the action is in the task's box.
    assert policy.draw_noise(4).shape == noise.shape
    low, high = policy.centre - 2 * policy.stretch, policy.centre + 2 * policy.stretch
    assert np.all((low <= policy(OBS)) & (policy(OBS) <= high))


@pytest.mark.parametrize("case", CASES)
def test_stablehlo_agrees(case: str) -> None:
    pytest.importorskip("flatbuffers")
    exported = jax.export.deserialize(bytearray(files.to_stablehlo(described(case))))
    fed = (OBS, noise_of(case))[: len(exported.in_avals)]
    np.testing.assert_allclose(exported.call(*fed), expected(case), **close)
    np.testing.assert_allclose(exported.call(*(x[:1] for x in fed)), expected(case)[:1], **close)


@pytest.mark.parametrize("case", CASES)
def test_onnx_agrees(case: str) -> None:
    pytest.importorskip("jax2onnx")
    runtime = pytest.importorskip("onnxruntime")
    content = files.to_onnx(described(case))
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    assert names == ["obs", "noise"][: len(names)]
    for rows in (1, 4):
        fed = dict(zip(names, (OBS[:rows], noise_of(case)[:rows]), strict=False))
        (action,) = session.run(["action"], fed)
        np.testing.assert_allclose(action, expected(case)[:rows], **close)


@pytest.mark.parametrize("name", ["mish", "gelu", "relu"])
def test_activations_written_by_hand(name: str) -> None:
    from langevinrl.networks import ACTIVATIONS

    z = np.linspace(-12, 30, 200, dtype=np.float32)
    value, slope = numpy_policy.activate(name, z)
    assert value.dtype == slope.dtype == np.float32
    want = jax.jvp(ACTIVATIONS[name], (z,), (np.ones_like(z),))
    np.testing.assert_allclose(value, want[0], atol=2e-6, rtol=1e-6)
    np.testing.assert_allclose(slope, want[1], atol=2e-6, rtol=1e-6)


def test_the_loader_runs_alone(tmp_path: Path) -> None:
    """Copied out of the package, where there is neither JAX nor langevinrl."""
    source = Path(numpy_policy.__file__).read_text()
    assert len(source.splitlines()) < 135
    (tmp_path / "numpy_policy.py").write_text(source)
    (tmp_path / "policy.npz").write_bytes(files.to_numpy(described("nclql")))
    np.save(tmp_path / "obs.npy", OBS)
    np.save(tmp_path / "noise.npy", noise_of("nclql"))
    program = (
        "import sys; sys.modules['jax'] = sys.modules['langevinrl'] = None\n"
        "import numpy as np; from numpy_policy import NumpyPolicy\n"
        "action = NumpyPolicy('policy.npz')(np.load('obs.npy'), np.load('noise.npy'))\n"
        "np.save('action.npy', action)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "action.npy"), expected("nclql"), **close)


def test_a_seed_decides_what_numpy_draws() -> None:
    content = files.to_numpy(described("nclql"))
    one, same, other = (NumpyPolicy(BytesIO(content), seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one(OBS[0]), same(OBS[0]))
    assert not np.array_equal(one(OBS[0]), other(OBS[0]))
    noise = one.draw_noise(500)
    assert np.abs(noise[:, 0]).max() <= 1 < np.abs(noise[:, 1:]).max()
