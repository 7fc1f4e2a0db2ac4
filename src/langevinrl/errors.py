"""User errors, suggestions for unknown names, and the signals that stop a run."""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

_IN_FLAGS: ContextVar[bool] = ContextVar("in_flags", default=False)


class UserError(Exception):
    """A mistake the user can correct; the message says what was wrong and what was expected."""

    exit_code = 2  # of the command line; another attempt with the same input fails again


# Signals that ask a run to stop: Ctrl-C, a closed terminal, a cluster's warning before it kills.
STOP_SIGNALS: list[signal.Signals] = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows lacks some
]


def free_signals() -> list[signal.Signals]:
    """List the `STOP_SIGNALS` that may be handled here.

    Ctrl-C and SIGTERM always; the others only if they have no handler and are not ignored: `nohup`
    ignores a closed terminal, and a cluster's own tools handle its warnings.
    """
    always = (signal.SIGINT, signal.SIGTERM)
    return [n for n in STOP_SIGNALS if n in always or signal.getsignal(n) is signal.SIG_DFL]


class Interrupted(KeyboardInterrupt):
    """A signal stopped the work; the command line exits with 128 plus the signal's number."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def collect_errors(call: Callable[..., Any], *args: Any, **fields: Any) -> list[str]:
    """Call a function that validates and return the message of its UserError, if any."""
    try:
        call(*args, **fields)
    except UserError as error:
        return [str(error)]
    return []


def require_none(mistakes: Iterable[str], where: str = "") -> None:
    """Raise one UserError that lists all mistakes, if there are any."""
    found = list(dict.fromkeys(mistakes))
    if len(found) == 1:
        raise UserError(where + found[0])
    if found:
        raise UserError(f"{where}{len(found)} mistakes:\n  " + "\n  ".join(found))


class Alias(NamedTuple):
    """The fields here that correspond to a name used by other libraries and papers."""

    fields: list[str]  # of which an agent has some
    note: str = ""  # how they differ from it, or what replaces it


# Names that Stable-Baselines3, CleanRL and papers use, the fields here, and a note.
_SAME_FIELDS: list[tuple[str, str, str]] = [
    ("w inv_temp", "inverse_temperature", ""),
    ("ent_coef alpha temperature", "initial_alpha inverse_temperature",
     "the initial value where α is learned, else w = 1/α"),
    ("lr learning_rate step_lr", "learning_rate critic_learning_rate actor_learning_rate", ""),
    ("critic_lr q_lr", "critic_learning_rate learning_rate", ""),
    ("actor_lr policy_lr", "actor_learning_rate", ""),
    ("alpha_lr", "temperature_learning_rate", ""),
    ("tau soft_update_rate", "target_rate", ""),
    ("polyak", "target_rate", "target_rate is 1 - polyak"),
    ("discount discount_factor", "gamma", ""),
    ("reward_scaling kappa", "reward_scale", ""),
    ("norm_reward normalize_reward", "reward_norm", ""),
    ("norm_obs normalize_observation", "", "wrap the environment with langevinrl.standardise"),
    ("buffer_size buffer_capacity replay_size", "capacity", ""),
    ("learning_starts start_steps start_timesteps warmup_steps", "warmup",
     "in transitions, on top of the iterations"),
    ("train_freq gradient_steps utd utd_ratio num_updates", "updates_per_iteration",
     "an iteration steps every environment once"),
    ("total_timesteps timesteps n_timesteps total_steps max_steps num_iterations", "iterations",
     "each is num_envs transitions, which learn(total_timesteps=) counts"),
    ("n_envs num_workers", "num_envs", ""),
    ("env_id env_name environment task", "env", ""),
    ("minibatch_size", "batch_size", ""),
    ("net_arch policy_kwargs hidden_dim hidden_size hidden_sizes hidden_layers", "hidden",
     "the sizes of the hidden layers, such as 256 256"),
    ("activation_fn", "activation", ""),
    ("eval_freq eval_interval", "eval_every", ""),
    ("n_eval_episodes num_eval_episodes", "eval_episodes", ""),
    ("save_freq", "checkpoint_every", ""),
    ("log_interval log_freq", "log_every", ""),
    ("n_seeds num_seeds", "seeds", ""),
    ("random_seed", "seed", ""),
    ("log_dir logdir output_dir run_dir save_path", "out", ""),
    ("epsilon eps", "step_size", ""),
    ("langevin_steps", "num_steps steps_per_level flow_steps", ""),
    ("n_steps", "n_step num_steps steps_per_level flow_steps",
     "n_step counts rewards, the others steps of a chain"),
    ("nstep multi_step", "n_step", ""),
    ("levels n_levels num_noise_levels", "num_levels", ""),
    ("sigma sigmas", "sigma_max sigma_min", ""),
    ("num_candidates num_samples best_of_n", "best_of", ""),
    ("normalize", "normalise", ""),
    ("target_entropy", "target_entropy_scale", "times minus the number of action axes"),
    ("action_noise use_sde exploration_noise", "",
     "there is none: exploration comes from the policy's own samples"),
    ("policy mlppolicy multiinputpolicy", "hidden",
     "there is no policy class; the agent's name comes first"),
    ("verbose progress_bar quiet", "", "learn(progress_bar=False) keeps a run quiet"),
    ("callback callbacks", "", "they are given to learn(callback=)"),
    ("device cuda gpu", "",
     "JAX chooses; the environment variable JAX_PLATFORMS=cpu or cuda overrides it"),
    ("tensorboard_log wandb logger", "track", "CSV is always written"),
    ("fast fast_balance", "", "it was removed in version 0.2; use the preset short, or the agent "
     "nclql-auto, which needs none"),
]  # fmt: skip
ALIASES = {
    name: Alias(fields.split(), note)
    for names, fields, note in _SAME_FIELDS
    for name in names.split()
}


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about an unknown name, with similar names and all known ones."""
    known, name = list(known), str(name)
    hint = alias_hint(name, known)
    if not hint:
        same = [other for other in known if _bare(other) == _bare(name)]
        near = same or difflib.get_close_matches(name.lower(), known, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"unknown {what} {name!r}{hint} Known: {', '.join(known)}"


def alias_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that says what an alias is called here; "" if it is none."""
    alias = ALIASES.get(re.sub(r"\W", "_", name).lower().strip("_"))
    if alias is None:
        return ""
    ours = [field(other) for other in alias.fields if other in set(known)]
    parts = [f"here it is {' or '.join(ours)}"] if ours else []
    parts += [alias.note] if alias.note else []
    return "; " + ": ".join(parts) + "." if parts else ""


def _bare(name: str) -> str:
    """Return a name in lower case without punctuation: NC-LQL is nclql."""
    return re.sub(r"[\W_]", "", name).lower()


def field(name: str, value: Any = None) -> str:
    """Return a field as the user writes it: batch_size=8, or --batch-size 8 on the command line.

    True becomes a switch there: trust=True is --trust.
    """
    if _IN_FLAGS.get():
        flag = f"--{name.replace('_', '-')}"
        return flag if value is None or value is True else f"{flag} {value}"
    return name if value is None else f"{name}={value}"


def in_command_line() -> bool:
    """Return whether this code was called by the command line rather than by a user's Python."""
    return _IN_FLAGS.get()


@contextmanager
def in_flags() -> Iterator[None]:
    """Make errors name fields as command-line flags."""
    token = _IN_FLAGS.set(True)
    try:
        yield
    finally:
        _IN_FLAGS.reset(token)
