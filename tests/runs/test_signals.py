"""Signals: the run is saved first, the exit code tells, and JAX is never interrupted."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import jax
import pytest
from tiny import lql_config

from langevinrl.errors import STOP_SIGNALS, Interrupted
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.finish import Stopped
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.signals import listening
from langevinrl.runs.train import train
from langevinrl.storage.folder import RunFolder

RUN, INFO = cast(Run, None), cast(StepInfo, None)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOP_SIGNALS, ids=lambda number: number.name)
def test_the_first_signal_asks_to_stop_and_the_second_raises(number: signal.Signals) -> None:
    outer = signal.signal(number, signal.SIG_DFL)  # ignored where tests run in the background
    try:
        with pytest.raises(Interrupted) as caught, listening() as signals:
            assert not signals.on_start(RUN)
            send(number)
            assert signals.received == [number] and signals.on_step(RUN, INFO)
            send(number)
        assert not isinstance(caught.value, Stopped) and caught.value.number == number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, outer)


def test_signals_with_a_handler_or_ignored_are_left_alone() -> None:
    """nohup, and a cluster's own tools."""
    received: list[int] = []
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    warned = signal.signal(signal.SIGUSR2, lambda number, _: received.append(number))
    try:
        with listening() as signals:
            send(signal.SIGHUP)
            send(signal.SIGUSR2)
        assert signals.received == [] and received == [signal.SIGUSR2]
    finally:
        signal.signal(signal.SIGHUP, old)
        signal.signal(signal.SIGUSR2, warned)


def test_a_second_signal_waits_until_jax_returns() -> None:
    """KeyboardInterrupt while JAX traces or compiles can end the process."""
    passed: list[str] = []

    def traced(x: Any) -> Any:
        send(signal.SIGINT)
        send(signal.SIGINT)
        time.sleep(0.3)  # sent again meanwhile
        passed.append("traced")
        return x + 1

    with pytest.raises(KeyboardInterrupt), listening():
        jax.jit(traced)(1.0)
        passed.append("compiled")
        for _ in range(100):
            time.sleep(0.05)
        passed.append("not interrupted")
    assert passed == ["traced", "compiled"]


class Early(Callback):
    def on_start(self, run: Run) -> None:
        send(signal.SIGTERM)


def test_a_signal_before_the_first_step_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(Stopped, match="iteration 0") as caught:
        train(lql_config(folder.path), callbacks=[Early()], quiet=True)
    assert caught.value.number == signal.SIGTERM
    assert folder.config.exists() and not folder.saved_checkpoints()


def test_whoever_starts_a_run_can_name_the_command_to_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert str(Stopped(7, Path("my run"))).endswith("langevinrl resume 'my run'")
    monkeypatch.setenv("LANGEVINRL_RESUME", "make train")
    assert str(Stopped(7, Path("my run"))).endswith("Go on with: make train")


START = [sys.executable, *"-m langevinrl train lql --env toys:timed --hidden 8 --out run".split()]
SMALL = "--warmup 60 --batch-size 8 --capacity 200 --num-envs 2 --log-every 10".split()
LONG = "--iterations 1000000 --eval-every 1000000 --async-envs".split()
PATHS = os.pathsep.join([*sys.path, str(Path(__file__).parent.parent)])


def test_sigterm_to_the_process_group_saves_and_leaves_no_process(tmp_path: Path) -> None:
    """A cluster or terminal sends it to the environments' processes too."""
    process = subprocess.Popen(
        START + SMALL + LONG,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": PATHS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    metrics, end = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    output, _ = process.communicate(timeout=60)  # its pipe closes when the last process has ended
    assert process.returncode == 143, output
    assert "langevinrl resume run" in output and "Traceback" not in output
    assert RunFolder(tmp_path / "run").saved_iteration() >= 10


def test_a_run_survives_the_loss_of_its_console(tmp_path: Path) -> None:
    """stdout is a full device, stderr is closed."""
    command = shlex.join([*START, *SMALL, "--iterations", "20"])
    environment = os.environ | {"PYTHONPATH": PATHS}
    done = subprocess.run(f"{command} >/dev/full 2>&-", shell=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0
    assert RunFolder(tmp_path / "run").saved_iteration() == 20
