"""Every form of every agent acts as its policy does on the same noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from export_cases import CASES, SPACES, expected, make, policy_of

from langevinrl.errors import UserError
from langevinrl.export import NumpyPolicy, draw_noise, files
from langevinrl.export.trace import trace_policy

close = {"rtol": 0, "atol": 2e-5}  # actions have a range of up to 12


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agents")


@pytest.mark.parametrize("case", CASES)
def test_numpy_file_acts_as_the_agent(case: str, folder: Path) -> None:
    policy = NumpyPolicy(BytesIO(files.to_numpy(make(case, folder)[2])), seed=0)
    obs, noise, action = expected(case, folder)
    assert policy(obs, noise).dtype == action.dtype
    np.testing.assert_allclose(policy(obs, noise), action, **close)
    row = {name: leaf[2] for name, leaf in noise.items()}
    np.testing.assert_allclose(policy(obs[2], row), action[2], **close)
    drawn = policy.draw_noise(len(obs))
    assert {n: x.shape for n, x in drawn.items()} == {n: x.shape for n, x in noise.items()}
    box = SPACES.action_space
    assert np.all((box.low <= policy(obs)) & (policy(obs) <= box.high))


@pytest.mark.parametrize("case", CASES)
def test_stablehlo_file_acts_as_the_agent(case: str, folder: Path) -> None:
    pytest.importorskip("flatbuffers")
    exported = jax.export.deserialize(bytearray(files.to_stablehlo(make(case, folder)[2])))
    obs, noise, action = expected(case, folder)
    np.testing.assert_allclose(exported.call(obs, noise), action, **close)


@pytest.mark.parametrize("case", CASES)
def test_onnx_file_acts_as_the_agent(case: str, folder: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    content = files.to_onnx(make(case, folder)[2])
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    obs, noise, action = expected(case, folder)
    for rows in (1, len(obs)):
        inputs = {name: leaf[:rows] for name, leaf in {"obs": obs, **noise}.items()}
        np.testing.assert_allclose(session.run(["action"], inputs)[0], action[:rows], **close)


def _loop(x: Any) -> Any:
    total, kept = jax.lax.scan(lambda s, y: (s + y, s * y), 0.0, x, reverse=True)
    return kept.at[0].get() + total * kept[jnp.array([1, 3])]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "loop": _loop,
    "gradient of slices": jax.grad(lambda x: jnp.tanh(x[1:4:2]).sum() + jnp.square(x[::-1])[0]),
    "reductions": lambda x: jnp.stack([x.max(), x.min(), x.prod(), x.mean(), x.std()]),
    "logic": lambda x: jnp.where((x > 0) & (x != 1) | ~jnp.isfinite(x), x, (x > 1).any() ^ True),
    "powers": lambda x: x**3 + (2 + x**2) ** -2 + jax.lax.rsqrt(1 + x * x) + jnp.power(2.0, x),
    "functions": lambda x: jax.nn.gelu(x, approximate=False) + jax.nn.softplus(x) + jnp.expm1(x),
    "more functions": lambda x: jax.nn.sigmoid(x) * jnp.sin(x) + jnp.cumsum(x) + jnp.sign(x),
    "choices": lambda x: jax.nn.one_hot(x.argmax(), 5) * jax.nn.softmax(x) + x.argmin(),
    "arrays": lambda x: jnp.concatenate(jnp.split(jnp.outer(x, x)[:, ::2].T, [1], axis=0)),
    "products": lambda x: jnp.einsum("i,bij,jbk->kb", x, jnp.ones((2, 5, 3)), jnp.ones((3, 2, 4))),
    "indices": lambda x: jnp.take_along_axis(jnp.outer(x, x), jnp.argsort(jnp.arange(5))[None], 1),
    "computed indices": lambda x: jnp.outer(x, x)[x.argmax(), 1:] + x[x.argmin() - 5],
    "computed rows": lambda x: jnp.take_along_axis(
        jnp.stack([x, 2 * x, x**2]), jnp.outer(jnp.ones(3), x).argmax(axis=0, keepdims=True), axis=0
    ),
    "an input": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("format", ["numpy", "onnx"])
def test_functions_of_all_supported_primitives_export(name: str, format: str) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
    _, write = files.WRITERS[format]
    write(policy_of(FUNCTIONS[name]))  # compares its actions with the function's


def test_unknown_primitive_is_named() -> None:
    with pytest.raises(UserError, match="primitive 'sort', which numpy and onnx files cannot hold"):
        files.to_numpy(policy_of(jnp.sort))
    with pytest.raises(UserError, match="dtype float16"):
        files.to_numpy(policy_of(lambda x: x.astype("float16") * 2))


def test_infinite_weights_are_refused() -> None:
    with pytest.raises(UserError, match="weights of Function have NaN or infinite numbers"):
        files.to_numpy(policy_of(lambda x: x * jnp.array([1.0, 2.0, jnp.nan, 1.0, 0.0])))


@dataclass(frozen=True)
class Noisy:
    """An agent whose noise a test chooses."""

    draw: Callable[..., Any]

    def noise(self, key: Any, num: int) -> Any:
        return {"used": self.draw(key, num), "exploring": jnp.ones((num, 3))}

    def policy(self, state: Any, obs: Any, noise: Any, *, explore: bool) -> Any:
        return noise["used"] + (noise["exploring"] if explore else 0.0)


def _uniform_start(key: Any, num: int) -> Any:
    """Draw normal numbers of which the first of each row are uniform."""
    return jax.random.normal(key, (num, 3)).at[:, 0].set(jax.random.uniform(key, (num,), minval=-1))


def test_noise_is_named_by_its_distribution() -> None:
    def names(draw: Callable[..., Any]) -> dict[str, tuple[int, ...]]:
        return trace_policy(Noisy(draw), None, SPACES).noise

    normal, uniform, bound = jax.random.normal, jax.random.uniform, SPACES.bound
    assert names(lambda key, num: normal(key, (num, 3))) == {"normal.used": (3,)}
    assert names(lambda key, num: uniform(key, (num, 3), float, -1.0)) == {"uniform.used": (3,)}
    in_box = names(lambda key, num: uniform(key, (num, 3), float, -bound, bound))
    assert in_box == {"uniform.used": (3,)}
    assert names(lambda key, num: jnp.zeros((num, 3))) == {}
    for draw in (lambda key, num: uniform(key, (num, 3)), _uniform_start):
        with pytest.raises(UserError, match="noise 'used' is neither standard normal nor uniform"):
            names(draw)


def test_noise_is_drawn_as_its_name_says() -> None:
    shapes = {"normal.steps": (2, 3), "uniform": ()}
    noise = draw_noise(shapes, np.random.default_rng(0), rows=4000)
    assert noise["normal.steps"].shape == (4000, 2, 3) and noise["uniform"].dtype == np.float32
    assert abs(noise["normal.steps"].std() - 1) < 0.03 and 3 < noise["normal.steps"].max()
    assert abs(noise["uniform"].std() - 3**-0.5) < 0.03 and np.abs(noise["uniform"]).max() <= 1
