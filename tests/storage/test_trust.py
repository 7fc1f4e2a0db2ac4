"""A received folder imports nothing; the user's own is resumed by one command."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl import Model, cli
from langevinrl.errors import UserError, in_flags
from langevinrl.runs.config import RunConfig
from langevinrl.runs.train import resume
from langevinrl.storage import cache, trust
from langevinrl.storage.manifest import digest_of
from langevinrl.sweeps.grid import make_config, read_grid
from langevinrl.sweeps.job import run_job
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.space import read_search
from langevinrl.sweeps.start import go_on

LURE = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nfrom toys import wide\n"


@pytest.fixture
def new_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Another user, who has trained nothing; the user's state folder."""
    monkeypatch.setenv(trust.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(trust, "_remembered", {})
    return tmp_path / "state"


@pytest.fixture
def lure(new_user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module outside of any run that leaves a file `ran` when it is imported."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "lure.py").write_text(LURE)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "lure", raising=False)
    return place / "ran"


def sent(tiny_run: Path, place: Path, **fields: Any) -> Path:
    """Return a run with other names in its configuration and valid digests."""
    folder = shutil.copytree(tiny_run, place)
    table = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table | fields))
    for manifest in folder.glob("checkpoints/*/manifest.json"):
        table = json.loads(manifest.read_text())
        table["config"] |= fields
        manifest.write_text(json.dumps(table | {"digest": digest_of(table)}))
    return folder


@pytest.mark.parametrize(
    ("agent", "env", "kwargs", "count"),
    [
        ("nclql", "Hopper-v4", {}, 0),
        ("nclql", "dm_control/cheetah-run-v0", {"g": 9.8, "name": "low"}, 0),
        ("nclql", "langevinrl.studies.bandit.env:make", {}, 0),
        ("nclql", "langevinrl.studies.bandit.env:make", {"text": "x"}, 1),
        ("nclql", "langevinrl.cli:main", {}, 1),
        ("nclql", "pytest:main", {}, 1),
        ("nclql", "shimmy:Hopper-v4", {}, 1),
        ("pytest:main", "http.server:test", {}, 2),
        ("nclql", "GymV26Environment-v0", {"env_id": "X-v0"}, 1),
        ("nclql", "dm_control/compatibility-env-v0", {}, 1),
        ("nclql", "Hopper-v4", {"make": {"inner": ["os:getcwd"]}}, 1),
    ],
)
def test_names_that_would_be_imported(
    agent: str, env: str, kwargs: dict[str, Any], count: int
) -> None:
    assert len(trust.importing_names(agent, env, kwargs)) == count


@pytest.mark.parametrize(
    ("verb", "field"),
    [
        ("evaluate", "env"), ("resume", "env"), ("video", "env"), ("train", "env"),
        ("evaluate", "agent"), ("resume", "agent"), ("video", "agent"), ("train", "agent"),
        ("export", "agent"),
    ],
)  # fmt: skip
def test_no_verb_imports_names_of_a_received_folder(
    verb: str,
    field: str,
    tiny_run: Path,
    lure: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = sent(tiny_run, tmp_path / "sent", **{field: "lure:wide"})
    what = folder / "config.json" if verb == "train" else folder
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, str(what)])
    said = capsys.readouterr().err
    assert caught.value.code == 2 and "lure:wide" in said and "--trust" in said
    assert ("--env" in said) == (field == "env")
    assert not lure.exists()


def test_received_model_acts_without_importing_its_environment(
    tiny_run: Path, lure: Path, tmp_path: Path
) -> None:
    folder = sent(tiny_run, tmp_path / "sent", env="lure:wide")
    model, own = Model.load(folder), Model.load(tiny_run)
    obs = np.zeros(3, np.float32)
    np.testing.assert_array_equal(model.predict(obs)[0], own.predict(obs)[0])
    for call in (model.evaluate, lambda: model.learn(1), lambda: resume(folder)):
        with pytest.raises(UserError, match=r"lure:wide.*trust=True, or name your own with env"):
            call()
    played = Model.load(folder, env="toys:wide").evaluate(1)
    assert not lure.exists()
    assert Model.load(folder, trust=True).evaluate(1) == played
    assert lure.exists()
    assert RunConfig.read(folder / "config.json").env == "lure:wide"  # asked once


def test_trusted_run_stays_trusted_when_moved(
    tiny_run: Path, lure: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sent(tiny_run, tmp_path / "sent", env="lure:wide")
    names = RunConfig.parse(folder / "config.json").imported()
    trust.remember(names)  # as training with it does
    monkeypatch.setattr(trust, "_remembered", {})  # in another process
    moved = folder.rename(tmp_path / "moved")
    assert RunConfig.read(moved / "config.json").env == "lure:wide"
    # The same name with other arguments, or from another file, is another thing.
    with pytest.raises(UserError, match="not trained with it before"):
        trust.require_trusted(moved, trust.importing_names("lql", "lure:wide", {"a": 1}))
    other = tmp_path / "other"
    other.mkdir()
    (other / "lure.py").write_text(LURE)
    monkeypatch.syspath_prepend(str(other))
    with pytest.raises(UserError, match="not trained with it before"):
        RunConfig.read(moved / "config.json")


@pytest.mark.parametrize("state", ["", "a file"])
def test_without_a_state_folder_resume_asks_for_trust(
    tmp_path: Path, new_user: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    if state:
        new_user.touch()
    else:
        monkeypatch.delenv(trust.VARIABLE)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", no_home)
        assert trust.state_folder() is None
    trust.remember(["env toys:wide"])
    assert trust.is_remembered("env toys:wide")  # by this process
    monkeypatch.setattr(trust, "_remembered", {})
    with pytest.raises(UserError, match="trust=True"):
        trust.require_trusted(tmp_path, ["env toys:wide"])


def no_home() -> Path:
    raise RuntimeError("no home")


def test_damaged_record_of_trust_is_ignored(new_user: Path) -> None:
    trust.remember(["env toys:wide"])
    (record,) = (new_user / "trained").iterdir()
    for text in (
        "{",
        "[]",
        '{"name": "env toys:wide", "files": 3}',
        '{"name": "env x", "files": []}',
    ):
        record.write_text(text)
        trust._remembered.clear()
        assert not trust.is_remembered("env toys:wide")


def test_nothing_is_imported_from_inside_a_run_folder(
    tiny_run: Path, new_user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sent(tiny_run, tmp_path / "sent", env="inner:wide")
    (folder / "inner.py").write_text(LURE)
    monkeypatch.syspath_prepend(str(folder))
    for call in (
        lambda: resume(folder, trust=True),
        lambda: resume(folder, env="inner:wide"),
        lambda: Model.load(folder, env="inner:wide"),
        lambda: Model.load(folder, trust=True).evaluate(1),
        lambda: RunConfig.read(folder / "config.json", trust=True),
    ):
        with pytest.raises(UserError, match="imported from inside"):
            call()
    assert not (folder / "ran").exists()


def test_current_folder_is_searched_last_and_never_in_a_run(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.chdir(tiny_run / "checkpoints")
    trust.search_here()
    assert "" not in sys.path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("")
    assert trust._files_of("beside:f") == []
    with in_flags():  # the command line would look here
        assert trust._files_of("beside:f") == [str(tmp_path / "beside.py")]
    trust.search_here()
    assert sys.path[-1] == ""


def test_command_line_imports_no_package_from_the_current_folder(tmp_path: Path) -> None:
    """`python -m` alone would search the current folder first."""
    for name in ("tyro", "rich", "jax", "gymnasium"):
        (tmp_path / f"{name}.py").write_text(LURE)
    done = subprocess.run(
        [sys.executable, "-m", "langevinrl", "agents"], cwd=tmp_path, capture_output=True,
        text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0 and "nclql" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()


def test_received_sweep_imports_nothing(lure: Path, tmp_path: Path) -> None:
    base = {"env": "lure:wide", "agent": "lql", "iterations": 4}
    (tmp_path / "grid.json").write_text(json.dumps({"base": base}))
    (tmp_path / "axes.json").write_text(
        json.dumps({"base": {"env": "Hopper-v4"}, "axes": {"agent": ["lql", "lure:wide"]}})
    )
    (tmp_path / "search.json").write_text(json.dumps({"base": base, "space": {"gamma": [0.9]}}))
    for call in (
        lambda: read_grid(tmp_path / "grid.json"),
        lambda: read_grid(tmp_path / "axes.json"),
        lambda: read_search(tmp_path / "search.json"),
    ):
        with pytest.raises(UserError, match="lure:wide"):
            call()
    config = dataclasses.replace(
        make_config({**base, "env": "Pendulum-v1"}).resolved(), env="lure:wide"
    )
    folder = SweepFolder.write(tmp_path / "sweep", [config])
    (job,) = folder.jobs.values()
    with pytest.raises(UserError, match="lure:wide"):
        go_on(folder)
    assert run_job(folder.path, job.id) == "refused" and "lure:wide" in job.last_error()
    assert not lure.exists()
    assert read_grid(tmp_path / "grid.json", trust=True).base == base
    assert read_grid(tmp_path / "grid.json").base == base  # asked once
    trust.require_trusted(folder.path, config.imported())


def test_compiled_programs_of_a_received_sweep_are_not_run(
    new_user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(place: Path | None = None) -> None:
        raise UserError(f"programs of {place}")

    monkeypatch.setattr(cache, "use_cache", tell)
    config = make_config({"env": "Pendulum-v1", "agent": "lql", "iterations": 4}).resolved()
    folder = SweepFolder.write(tmp_path / "sweep", [config])
    (job,) = folder.jobs.values()
    run_job(folder.path, job.id)
    assert job.last_error() == "programs of None"
    trust.remember([trust.made_by_us(folder.path)])  # as starting a sweep does
    run_job(folder.path, job.id)
    assert job.last_error() == f"programs of {tmp_path / 'sweep' / 'programs'}"


@pytest.mark.parametrize("job", [{"id": "../../x"}, {"config": {"agent": "../../x"}}], ids=str)
def test_job_outside_of_the_sweep_folder_is_refused(tmp_path: Path, job: dict[str, Any]) -> None:
    config = make_config({"env": "Pendulum-v1", "iterations": 4}).resolved()
    SweepFolder.write(tmp_path / "sweep", [config])
    table = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    row = table["jobs"][0]
    row["config"] |= job.get("config", {})
    row["id"] = job.get("id", row["id"])
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps(table))
    with pytest.raises(UserError, match="outside of the sweep"):
        SweepFolder(tmp_path / "sweep")
