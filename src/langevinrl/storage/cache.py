"""Cache of compiled programs on disk, so that a second start does not compile again."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from langevinrl.storage.files import user_folder

# The folder of the cache, or "off"; by default in the user's cache folder.
VARIABLE = "LANGEVINRL_CACHE"
MIN_COMPILE_SECONDS = 0.2  # faster compilations are not cached


def use_cache(place: Path | None = None) -> Path | None:
    """Cache compiled programs below `place`, or in the user's cache folder; return the folder.

    Returns None if there is no writable folder, if others can write to it, if LANGEVINRL_CACHE is
    "off", or if JAX already has a cache and no `place` is given.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    chosen = jax.config.values["jax_compilation_cache_dir"]
    is_off = os.environ.get(VARIABLE, "").lower() in ("off", "0", "no", "false")
    if is_off or (place is None and chosen):
        return None
    parent = cache_folder() if place is None else place
    if parent is None:
        return None
    # A folder per machine: code for one processor may not run on another.
    folder = parent / os.uname().nodename / f"jax-{jax.__version__}"
    try:
        parent.parent.mkdir(parents=True, exist_ok=True)
        for level in (parent, folder.parent, folder):
            level.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(level):
                warnings.warn(
                    f"programs are compiled without a cache: others can write to {level}. "
                    "Remove it, or take their permission with chmod go-w",
                    stacklevel=2,
                )
                return None
    except OSError:  # not writable: every start compiles
        return None
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECONDS)  # type: ignore[no-untyped-call]
    compilation_cache.reset_cache()  # JAX reads the setting at its first compilation only
    return folder


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's and nobody else can write there.

    Compiled programs are code: a cache that others can write to would run theirs.
    """
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def cache_folder() -> Path | None:
    """Return $LANGEVINRL_CACHE, $XDG_CACHE_HOME/langevinrl or ~/.cache/langevinrl."""
    return user_folder(VARIABLE, "XDG_CACHE_HOME", ".cache")
