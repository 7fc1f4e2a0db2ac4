"""The command line: one file per verb, imported when it is used."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable

from langevinrl.errors import Interrupted, UserError, in_flags, unknown
from langevinrl.logs.console import open_closed_streams, use_plain_letters
from langevinrl.storage.files import escape_controls
from langevinrl.storage.trust import MODULE_NAME, search_here

# A verb is the `main` of the file of its name.
VERBS: dict[str, str] = {
    "train": "Train an agent: langevinrl train AGENT --env ID [any field].",
    "resume": "Continue a stopped run: langevinrl resume DIR [--iterations N].",
    "evaluate": "Play episodes with a trained agent: langevinrl evaluate DIR [--episodes 20].",
    "export": "Write a policy as one file: langevinrl export DIR [--format numpy].",
    "video": "Record episodes as an MP4: langevinrl video DIR [--episodes 1] [--out FILE.mp4].",
    "plot": "Draw learning curves: langevinrl plot DIR... [--x AXIS] [--out FILE].",
    "report": "Summarise runs as page, tables and figures: langevinrl report DIR... [--out FILE].",
    "sweep": "Train a grid of runs: langevinrl sweep FILE [--backend local|ray|slurm].",
    "tune": "Search for good hyperparameters: langevinrl tune FILE [--trials 50].",
    "reproduce": "Run a study of the paper: langevinrl reproduce STUDY [--scale F] [--yes].",
    "agents": "List the agents.",
    "params": "Count trainable parameters: langevinrl params --obs-dim O --act-dim A [--json].",
    "bandit": "Run the 2D bandit study: langevinrl bandit --out DIR [--quick].",
    "bench": "Time update, action and decision: langevinrl bench [AGENT...] [--latency].",
}


def main(argv: list[str] | None = None) -> None:
    """Run the command line.

    The exit code is 2 for a user error, 1 if the environment failed, and 128 plus the number of the
    signal that ended it: 130 for Ctrl-C, 143 for SIGTERM.
    """
    open_closed_streams()
    use_plain_letters()
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: langevinrl VERB ...\n")
        for name, summary in VERBS.items():
            print(f"  {name:9} {summary}")
        raise SystemExit(0 if words else 2)
    if words[0] == "--version":
        from langevinrl import __version__

        print(__version__)
        return
    try:
        with in_flags():
            if any(MODULE_NAME.fullmatch(word.removeprefix("--env=")) for word in words):
                search_here()
            _verb(words[0])(words[1:])
    except UserError as error:
        print(f"langevinrl: {escape_controls(str(error))}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt as stopped:
        print(str(stopped) or "Interrupted.")
        number = stopped.number if isinstance(stopped, Interrupted) else signal.SIGINT
        raise SystemExit(128 + number) from None


def _verb(name: str) -> Callable[[list[str]], None]:
    if name not in VERBS:
        raise UserError(unknown("command", name, VERBS))
    verb: Callable[[list[str]], None] = importlib.import_module(f"langevinrl.cli.{name}").main
    return verb
