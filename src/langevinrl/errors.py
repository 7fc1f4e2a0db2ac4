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

    fields: tuple[str, ...]  # of which an agent has some
    note: str = ""  # how they differ from it, or what replaces it


_RATES = ("learning_rate", "critic_learning_rate", "actor_learning_rate")
_UPDATES = Alias(("updates_per_iteration",), "an iteration steps every environment once")
_LENGTH = Alias(
    ("iterations",), "each is num_envs transitions, which learn(total_timesteps=) counts"
)
_WARMUP = Alias(("warmup",), "in transitions, on top of the iterations")
_TEMPERATURE = Alias(
    ("initial_alpha", "inverse_temperature"), "the initial value where α is learned, else w = 1/α"
)
_NETWORK = Alias(("hidden",), "the sizes of the hidden layers, such as 256 256")
_NOISE = Alias((), "there is none: exploration comes from the policy's own samples")
_QUIET = Alias((), "learn(progress_bar=False) keeps a run quiet")
_POLICY = Alias(("hidden",), "there is no policy class; the agent's name comes first")
# Names that Stable-Baselines3, CleanRL and papers use for fields here.
ALIASES: dict[str, Alias] = {
    **dict.fromkeys(("w", "inv_temp", "inverse_temp"), Alias(("inverse_temperature",))),
    **dict.fromkeys(("ent_coef", "alpha", "temperature", "entropy_coef"), _TEMPERATURE),
    **dict.fromkeys(("lr", "learning_rate", "step_lr"), Alias(_RATES)),
    **dict.fromkeys(("critic_lr", "q_lr", "qf_lr"), Alias(("critic_learning_rate", _RATES[0]))),
    **dict.fromkeys(("actor_lr", "policy_lr", "pi_lr"), Alias(("actor_learning_rate",))),
    **dict.fromkeys(("alpha_lr", "ent_lr"), Alias(("temperature_learning_rate",))),
    **dict.fromkeys(("tau", "target_tau", "soft_update_rate"), Alias(("target_rate",))),
    "polyak": Alias(("target_rate",), "target_rate is 1 - polyak"),
    **dict.fromkeys(("discount", "discount_factor"), Alias(("gamma",))),
    **dict.fromkeys(("reward_scaling", "kappa"), Alias(("reward_scale",))),
    **dict.fromkeys(("norm_reward", "normalize_reward"), Alias(("reward_norm",))),
    **dict.fromkeys(
        ("norm_obs", "normalize_observation", "obs_norm"),
        Alias((), "wrap the environment with langevinrl.standardise"),
    ),
    **dict.fromkeys(
        ("buffer_size", "buffer", "buffer_capacity", "replay_size", "replay_capacity",
         "memory_size", "max_size"),
        Alias(("capacity",)),
    ),
    **dict.fromkeys(
        ("learning_starts", "start_steps", "start_timesteps", "random_steps", "warmup_steps"),
        _WARMUP,
    ),
    **dict.fromkeys(
        ("train_freq", "gradient_steps", "utd", "utd_ratio", "updates_per_step", "num_updates"),
        _UPDATES,
    ),
    **dict.fromkeys(
        ("total_timesteps", "timesteps", "n_timesteps", "total_steps", "max_steps", "steps",
         "train_steps", "num_iterations", "n_iterations", "epochs"),
        _LENGTH,
    ),
    **dict.fromkeys(("n_envs", "n_env", "num_workers"), Alias(("num_envs",))),
    **dict.fromkeys(("env_id", "env_name", "environment", "task"), Alias(("env",))),
    **dict.fromkeys(("minibatch_size", "batch", "bs"), Alias(("batch_size",))),
    **dict.fromkeys(
        ("net_arch", "policy_kwargs", "hidden_dim", "hidden_size", "hidden_sizes",
         "hidden_layers", "layers", "units"),
        _NETWORK,
    ),
    **dict.fromkeys(("activation_fn", "nonlinearity"), Alias(("activation",))),
    **dict.fromkeys(("eval_freq", "eval_interval"), Alias(("eval_every",))),
    **dict.fromkeys(("n_eval_episodes", "num_eval_episodes"), Alias(("eval_episodes",))),
    **dict.fromkeys(("save_freq", "save_every"), Alias(("checkpoint_every",))),
    **dict.fromkeys(("log_interval", "log_freq"), Alias(("log_every",))),
    **dict.fromkeys(("n_seeds", "num_seeds"), Alias(("seeds",))),
    "random_seed": Alias(("seed",)),
    **dict.fromkeys(
        ("log_dir", "logdir", "output", "output_dir", "run_dir", "save_path", "folder"),
        Alias(("out",)),
    ),
    **dict.fromkeys(("epsilon", "eps", "dt"), Alias(("step_size",))),
    **dict.fromkeys(
        ("langevin_steps", "num_steps", "t"), Alias(("num_steps", "steps_per_level", "flow_steps"))
    ),
    "n_steps": Alias(
        ("n_step", "num_steps", "steps_per_level", "flow_steps"),
        "n_step counts rewards, the others steps of a chain",
    ),
    **dict.fromkeys(("nstep", "multi_step", "td_steps"), Alias(("n_step",))),
    **dict.fromkeys(("levels", "n_levels", "l", "num_noise_levels"), Alias(("num_levels",))),
    **dict.fromkeys(("sigma", "sigmas", "sigma1"), Alias(("sigma_max", "sigma_min"))),
    **dict.fromkeys(("num_candidates", "num_samples", "best_of_n", "n"), Alias(("best_of",))),
    "normalize": Alias(("normalise",)),
    "target_entropy": Alias(("target_entropy_scale",), "times minus the number of action axes"),
    **dict.fromkeys(("action_noise", "use_sde", "exploration_noise"), _NOISE),
    **dict.fromkeys(("policy", "policy_class", "mlppolicy", "multiinputpolicy"), _POLICY),
    **dict.fromkeys(("verbose", "progress_bar", "quiet"), _QUIET),
    **dict.fromkeys(("callback", "callbacks"), Alias((), "they are given to learn(callback=)")),
    **dict.fromkeys(
        ("device", "cuda", "gpu"),
        Alias((), "JAX chooses; the environment variable JAX_PLATFORMS=cpu or cuda overrides it"),
    ),
    **dict.fromkeys(
        ("tensorboard_log", "wandb", "logger"), Alias(("track",), "CSV is always written")
    ),
    "reset_num_timesteps": Alias((), "learn() always continues; make a new Model to start again"),
    "tb_log_name": Alias(("out",)),
}  # fmt: skip


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
