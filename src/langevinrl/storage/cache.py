"""Compiled programs kept on disk, so that the second start of a run does not compile again."""

from __future__ import annotations

import os
from pathlib import Path

from langevinrl.storage.files import user_folder

# Where programs are kept, or "off"; without it, in the user's cache folder.
VARIABLE = "LANGEVINRL_CACHE"
MIN_COMPILE_SECONDS = 0.2  # what compiles sooner is not worth a file


def use_cache(place: Path | None = None) -> Path | None:
    """Keep compiled programs below `place`, or in the user's cache folder; says where.

    None if there is no such place, if the variable LANGEVINRL_CACHE is "off", or if this process
    already has a cache of someone's choosing: JAX's own setting is left as it is unless `place` is
    given.  A cache decides how soon a run starts, never what it learns.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    chosen = jax.config.values["jax_compilation_cache_dir"]
    if not _is_on() or (place is None and chosen):
        return None
    parent = cache_folder() if place is None else place
    if parent is None:
        return None
    # Each machine its own: code made for one processor need not run on another.
    folder = parent / os.uname().nodename / f"jax-{jax.__version__}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: every start compiles, and nothing breaks
        return None
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECONDS)  # type: ignore[no-untyped-call]
    compilation_cache.reset_cache()  # JAX looks once only, at its first compilation
    return folder


def cache_folder() -> Path | None:
    """$LANGEVINRL_CACHE, $XDG_CACHE_HOME/langevinrl or ~/.cache/langevinrl; None if none is."""
    return user_folder(VARIABLE, "XDG_CACHE_HOME", ".cache")


def _is_on() -> bool:
    return os.environ.get(VARIABLE, "").lower() not in ("off", "0", "no", "false")
