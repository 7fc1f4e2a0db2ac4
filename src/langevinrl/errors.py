"""The one error meant for people, how it names what is near, what others call our fields; and what
asks for a stop."""

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
    """Something the user can put right: what was wrong, what was expected, what is near."""

    exit_code = 2  # of the command line: a slip, which another try does not mend


# What asks a run to stop: Ctrl-C, a closed terminal, and what clusters send before they kill.
STOP_SIGNALS: list[signal.Signals] = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)  # Windows has not all
]


def free_signals() -> list[signal.Signals]:
    """Those of `STOP_SIGNALS` to be heeded here.

    Ctrl-C and SIGTERM always; the others only where nobody heeds or ignores them: `nohup` wants a
    closed terminal ignored, and a cluster's own tools answer its warnings.
    """
    always = (signal.SIGINT, signal.SIGTERM)
    return [n for n in STOP_SIGNALS if n in always or signal.getsignal(n) is signal.SIG_DFL]


class Interrupted(KeyboardInterrupt):  # as KeyboardInterrupt, no error
    """A signal ended the work, orderly; the command line exits with 128 and its number."""

    def __init__(self, said: str, number: int) -> None:
        super().__init__(said)
        self.number = number


def said(call: Callable[..., Any], *args: Any, **fields: Any) -> list[str]:
    """What a call that checks something has to object: one sentence, or none."""
    try:
        call(*args, **fields)
    except UserError as error:
        return [str(error)]
    return []


def require_none(mistakes: Iterable[str], where: str = "") -> None:
    """Refuses with all mistakes at once, so that they can be mended at once."""
    found = list(dict.fromkeys(mistakes))
    if len(found) == 1:
        raise UserError(where + found[0])
    if found:
        raise UserError(f"{where}{len(found)} mistakes:\n  " + "\n  ".join(found))


class Usual(NamedTuple):
    """What a word of other libraries and papers is here."""

    ours: tuple[str, ...]  # fields that do its work; an agent has some of them
    note: str = ""  # how they differ from it, or what there is instead


_RATES = ("learning_rate", "critic_learning_rate", "actor_learning_rate")
_UPDATES = Usual(("updates_per_iteration",), "an iteration steps every environment once")
_LENGTH = Usual(
    ("iterations",), "each is num_envs transitions, which learn(total_timesteps=) counts"
)
_WARMUP = Usual(("warmup",), "in transitions, on top of the iterations")
_TEMPERATURE = Usual(
    ("initial_alpha", "inverse_temperature"), "where α is learned its start, else w, which is 1/α"
)
_NETWORK = Usual(("hidden",), "the widths of the hidden layers, such as 256 256")
_NOISE = Usual((), "there is none: the policy's own draws explore")
_QUIET = Usual((), "learn(progress_bar=False) keeps a run quiet")
_POLICY = Usual(("hidden",), "no policy class is chosen; the agent's name comes first")
# Stable-Baselines3's, CleanRL's and the papers' words, by what they are here.
USUAL_WORDS: dict[str, Usual] = {
    **dict.fromkeys(("w", "inv_temp", "inverse_temp"), Usual(("inverse_temperature",))),
    **dict.fromkeys(("ent_coef", "alpha", "temperature", "entropy_coef"), _TEMPERATURE),
    **dict.fromkeys(("lr", "learning_rate", "step_lr"), Usual(_RATES)),
    **dict.fromkeys(("critic_lr", "q_lr", "qf_lr"), Usual(("critic_learning_rate", _RATES[0]))),
    **dict.fromkeys(("actor_lr", "policy_lr", "pi_lr"), Usual(("actor_learning_rate",))),
    **dict.fromkeys(("alpha_lr", "ent_lr"), Usual(("temperature_learning_rate",))),
    **dict.fromkeys(("tau", "target_tau", "soft_update_rate"), Usual(("target_rate",))),
    "polyak": Usual(("target_rate",), "target_rate is 1 - polyak"),
    **dict.fromkeys(("discount", "discount_factor"), Usual(("gamma",))),
    **dict.fromkeys(("reward_scaling", "kappa"), Usual(("reward_scale",))),
    **dict.fromkeys(("norm_reward", "normalize_reward"), Usual(("reward_norm",))),
    **dict.fromkeys(("norm_obs", "normalize_observation"), Usual(("obs_norm",))),
    **dict.fromkeys(
        ("buffer_size", "buffer", "buffer_capacity", "replay_size", "replay_capacity",
         "memory_size", "max_size"),
        Usual(("capacity",)),
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
    **dict.fromkeys(("n_envs", "n_env", "num_workers"), Usual(("num_envs",))),
    **dict.fromkeys(("env_id", "env_name", "environment", "task"), Usual(("env",))),
    **dict.fromkeys(("minibatch_size", "batch", "bs"), Usual(("batch_size",))),
    **dict.fromkeys(
        ("net_arch", "policy_kwargs", "hidden_dim", "hidden_size", "hidden_sizes",
         "hidden_layers", "layers", "units"),
        _NETWORK,
    ),
    **dict.fromkeys(("activation_fn", "nonlinearity"), Usual(("activation",))),
    **dict.fromkeys(("eval_freq", "eval_interval"), Usual(("eval_every",))),
    **dict.fromkeys(("n_eval_episodes", "num_eval_episodes"), Usual(("eval_episodes",))),
    **dict.fromkeys(("save_freq", "save_every"), Usual(("checkpoint_every",))),
    **dict.fromkeys(("log_interval", "log_freq"), Usual(("log_every",))),
    **dict.fromkeys(("n_seeds", "num_seeds"), Usual(("seeds",))),
    "random_seed": Usual(("seed",)),
    **dict.fromkeys(
        ("log_dir", "logdir", "output", "output_dir", "run_dir", "save_path", "folder"),
        Usual(("out",)),
    ),
    **dict.fromkeys(("epsilon", "eps", "dt"), Usual(("step_size",))),
    **dict.fromkeys(
        ("langevin_steps", "num_steps", "t"), Usual(("num_steps", "steps_per_level", "flow_steps"))
    ),
    "n_steps": Usual(
        ("n_step", "num_steps", "steps_per_level", "flow_steps"),
        "n_step counts rewards, the others steps of a chain",
    ),
    **dict.fromkeys(("nstep", "multi_step", "td_steps"), Usual(("n_step",))),
    **dict.fromkeys(("levels", "n_levels", "l", "num_noise_levels"), Usual(("num_levels",))),
    **dict.fromkeys(("sigma", "sigmas", "sigma1"), Usual(("sigma_max", "sigma_min"))),
    **dict.fromkeys(("num_candidates", "num_samples", "best_of_n", "n"), Usual(("best_of",))),
    "normalize": Usual(("normalise",)),
    "target_entropy": Usual(("target_entropy_scale",), "times minus the number of action axes"),
    **dict.fromkeys(("action_noise", "use_sde", "exploration_noise"), _NOISE),
    **dict.fromkeys(("policy", "policy_class", "mlppolicy", "multiinputpolicy"), _POLICY),
    **dict.fromkeys(("verbose", "progress_bar", "quiet"), _QUIET),
    **dict.fromkeys(("callback", "callbacks"), Usual((), "they are given to learn(callback=)")),
    **dict.fromkeys(
        ("device", "cuda", "gpu"),
        Usual((), "JAX chooses; the environment variable JAX_PLATFORMS=cpu or cuda overrules it"),
    ),
    **dict.fromkeys(
        ("tensorboard_log", "wandb", "logger"), Usual(("track",), "CSV is always written")
    ),
    "reset_num_timesteps": Usual((), "learn always goes on; a new Model starts anew"),
    "tb_log_name": Usual(("out",)),
}  # fmt: skip


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One sentence for a name that is not there: what it was, what is near, what there is."""
    known, name = list(known), str(name)
    hint = usual_word(name, known)
    if not hint:
        same = [other for other in known if _bare(other) == _bare(name)]
        near = same or difflib.get_close_matches(name.lower(), known, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"unknown {what} {name!r}{hint} Known: {', '.join(known)}"


def usual_word(name: str, known: Iterable[str]) -> str:
    """What a word that others use is here, as the end of a sentence; nothing if it is not known."""
    usual = USUAL_WORDS.get(re.sub(r"\W", "_", name).lower().strip("_"))
    if usual is None:
        return ""
    ours = [field(other) for other in usual.ours if other in set(known)]
    if not ours and not usual.note:
        return ""
    parts = [f"here it is {' or '.join(ours)}"] if ours else []
    return "; " + ": ".join([*parts, *([usual.note] if usual.note else [])]) + "."


def _bare(name: str) -> str:
    """A name without the marks and capitals that people vary: NC-LQL is nclql."""
    return re.sub(r"[\W_]", "", name).lower()


def field(name: str, value: Any = None) -> str:
    """A field as the user writes it: batch_size=8, or --batch-size 8 on the command line.

    True is a switch there: trust=True is --trust.
    """
    if _IN_FLAGS.get():
        flag = f"--{name.replace('_', '-')}"
        return flag if value is None or value is True else f"{flag} {value}"
    return name if value is None else f"{name}={value}"


def in_command_line() -> bool:
    """Whether the command line is at work, not a user's own Python."""
    return _IN_FLAGS.get()


@contextmanager
def in_flags() -> Iterator[None]:
    """Within it errors name fields as the command line does."""
    token = _IN_FLAGS.set(True)
    try:
        yield
    finally:
        _IN_FLAGS.reset(token)
