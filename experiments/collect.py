"""Copy the small files of runs into results/, finished or not.

python experiments/collect.py ~/long/runs results/full_length      # a folder of runs or of a sweep
python experiments/collect.py short results/short/runs --lines 20  # fewer lines of metrics

The runs are made by these commands, each of which continues where it stopped:

langevinrl train nclql --env InvertedDoublePendulum-v4 --seed 100    # the same on Reacher-v4
langevinrl reproduce splits --tasks HalfCheetah --cases 1 3 5 --iterations 20000 --seeds 2 --yes
langevinrl reproduce single-draw --tasks InvertedDoublePendulum Reacher HalfCheetah \
    --iterations 10000 --seeds 1 --yes
"""

from __future__ import annotations

import json
from pathlib import Path

import tyro

from langevinrl.analysis import find_runs
from langevinrl.storage.folder import CONFIG, EVALUATIONS, METRICS, RESUMES, VERSIONS


def collect(
    source: tyro.conf.Positional[Path], target: tyro.conf.Positional[Path], lines: int = 200
) -> None:
    """Copy every run below `source` that has evaluations into a folder of `target`.

    lines: of metrics.jsonl that are kept, evenly spaced
    """
    for run in find_runs([source]):
        if run.status == "none":
            continue
        place = target / run.folder.name.replace(":", "-")  # of module:Class
        place.mkdir(parents=True, exist_ok=True)
        for name in (CONFIG, VERSIONS, RESUMES, EVALUATIONS, *([METRICS] if lines else [])):
            path = run.folder / name
            if path.exists():
                text = plain(name, path.read_text(), run.folder, place)
                text = text.replace(str(source.resolve()), source.name)  # in a sweep's commands
                (place / name).write_text(thinned(text, lines) if name == METRICS else text)
        print(place, run.status)


def plain(name: str, text: str, folder: Path, place: Path) -> str:
    """Return a file's text without paths of this machine."""
    text = text.replace(str(folder.resolve()), str(place)).replace(str(folder), str(place))
    if name == CONFIG:
        table = json.loads(text) | {"out": str(place)}
        return json.dumps(table, indent=2) + "\n"
    return text


def thinned(text: str, lines: int) -> str:
    """Return about so many of its lines, evenly spaced."""
    found = text.splitlines(keepends=True)
    step = max(1, len(found) // lines)
    return "".join(found[step - 1 :: step])


if __name__ == "__main__":
    tyro.cli(collect)
