"""Compilation cache: its folder, when it is off, and that programs are stored there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from langevinrl.storage import cache
from langevinrl.storage.cache import cache_folder, use_cache

NAMES = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has no cache yet; put back as it was."""
    before = {name: getattr(jax.config, name) for name in NAMES}
    jax.config.update("jax_compilation_cache_dir", None)  # type: ignore[no-untyped-call]
    for name in (cache.VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    for name, value in before.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
    compilation_cache.reset_cache()


@pytest.mark.usefixtures("unset")
def test_cache_is_in_the_users_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "langevinrl"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "langevinrl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folder = use_cache()
    host, version = os.uname().nodename, f"jax-{jax.__version__}"
    assert folder == tmp_path / "xdg" / "langevinrl" / host / version
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert {level.stat().st_mode & 0o077 for level in (folder, *folder.parents[:2])} == {0}
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.usefixtures("unset")
def test_programs_are_cached_even_after_an_earlier_compilation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "MIN_COMPILE_SECONDS", 0.0)
    jax.jit(lambda x: jnp.sin(x) + 1)(1.0)
    folder = use_cache(tmp_path)
    assert folder is not None and not list(folder.iterdir())
    jax.jit(lambda x: jnp.cos(x) + 2)(1.0)
    assert list(folder.glob("*-cache"))


@pytest.mark.usefixtures("unset")
def test_without_a_home_or_a_writable_folder_there_is_no_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert cache_folder() is None and use_cache() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    assert use_cache() is None
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize("level", ["langevinrl", "langevinrl/HOST", "langevinrl/HOST/VERSION"])
@pytest.mark.parametrize("kind", ["writable by others", "of another user"])
def test_cache_that_others_can_write_to_is_not_used(
    level: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled programs are code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    host, version = os.uname().nodename, f"jax-{jax.__version__}"
    folder = tmp_path / level.replace("HOST", host).replace("VERSION", version)
    folder.mkdir(mode=0o700, parents=True)
    if kind == "writable by others":
        folder.chmod(0o777)
    if kind == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(UserWarning, match=r"without a cache: others can write to .*langevinrl"):
        assert use_cache() is None
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.usefixtures("unset")
def test_cache_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    assert use_cache() is None and use_cache(tmp_path) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unset")
def test_cache_that_the_user_configured_is_kept(tmp_path: Path) -> None:
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))  # type: ignore[no-untyped-call]
    assert use_cache() is None
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")
