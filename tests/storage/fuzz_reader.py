"""Fuzz test of the checkpoint reader: any bytes are read or refused with a UserError.

    python tests/storage/fuzz_reader.py [SECONDS] [SEED]

It changes the files of tests/fixtures/reader and feeds them to the reader, with and without a
manifest that vouches for them.  An input that gets anything but arrays or a plain refusal is
written there, so that it is tried for ever after.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

from langevinrl.errors import UserError
from langevinrl.storage.arrays import read_arrays
from langevinrl.storage.checkpoint import load
from langevinrl.storage.files import digest_file
from langevinrl.storage.folder import MANIFEST, METADATA, RunFolder, checkpoint_name
from langevinrl.storage.manifest import Manifest

CORPUS = Path(__file__).parents[1] / "fixtures" / "reader"
TOKENS = (
    b"0", b"-1", b"1e9", b"99999999999999999999", b"null", b"true", b"[", b"]", b"{", b"}", b'"',
    b"F32", b"BOOL", b"I64", b"\xff", b"\x00", b",", b":", b"shape", b"NaN", b"[" * 2_000,
)  # fmt: skip


def read_as_arrays(content: bytes, place: Path) -> None:
    """Arrays in one file: read, or refused with a ValueError."""
    path = place / "one.safetensors"
    path.write_bytes(content)
    try:
        for mapped in (False, True):
            found = read_arrays(path, mapped)
        assert sum(array.nbytes for array in found.values()) <= len(content)
    except ValueError:
        return


def read_as_checkpoint(content: bytes, place: Path, file: str, vouched: bool) -> None:
    """A checkpoint with this among its files: loaded, or refused with a UserError."""
    folder = RunFolder(place / "run")
    checkpoint = folder.checkpoints / checkpoint_name(1)
    checkpoint.mkdir(parents=True, exist_ok=True)
    for path in checkpoint.iterdir():
        path.unlink()
    (checkpoint / METADATA).write_text(json.dumps({"iteration": 1}))
    (checkpoint / file).write_bytes(content)
    if vouched and file != MANIFEST:
        written = {path.name: digest_file(path) for path in checkpoint.iterdir()}
        (checkpoint / MANIFEST).write_bytes(Manifest(written).to_json())
    try:
        load(folder)
    except UserError:
        return


def check(content: bytes, place: Path) -> None:
    """All ways to read it."""
    read_as_arrays(content, place)
    for file in ("state.safetensors", "replay.safetensors", METADATA, MANIFEST):
        for vouched in (False, True):
            read_as_checkpoint(content, place, file, vouched)


def mutate(content: bytes, draw: random.Random) -> bytes:
    """A few changes: bits, pieces cut out, doubled or put in, and a wrong length of the header."""
    found = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at, end = sorted(draw.randint(0, len(found)) for _ in range(2))
        kind = draw.randrange(5)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at:end]
        elif kind == 2:
            found[at:at] = found[at:end]
        elif kind == 3:
            found[at : at + draw.randint(0, 3)] = draw.choice(TOKENS)
        else:
            found[:8] = draw.choice((0, 7, len(found), 2**40, 2**63)).to_bytes(8, "little")
    return bytes(found)


def corpus() -> list[Path]:
    return sorted(CORPUS.iterdir())


def main(seconds: float, seed: int) -> int:
    draw, begun, tried, failed = random.Random(seed), time.monotonic(), 0, 0
    texts = [path.read_bytes() for path in corpus()]
    with tempfile.TemporaryDirectory() as place:
        while time.monotonic() - begun < seconds:
            content = mutate(draw.choice(texts), draw)
            tried += 1
            try:
                check(content, Path(place))
            except Exception as error:
                name = CORPUS / f"found-{seed}-{tried}"
                name.write_bytes(content)
                print(f"{name}: {error!r}")
                failed = 1
                break
    seconds = round(time.monotonic() - begun)
    print(json.dumps({"tried": tried, "failed": failed, "seconds": seconds}))
    return failed


if __name__ == "__main__":
    words = [*sys.argv[1:], "60", "0"][:2] if len(sys.argv) < 3 else sys.argv[1:3]
    sys.exit(main(float(words[0]), int(words[1])))
