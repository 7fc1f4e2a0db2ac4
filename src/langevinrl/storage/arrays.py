"""Reader and writer of named arrays in the safetensors format.

A file is a length, a header in JSON and the arrays' bytes.  The safetensors package is not used: it
copies all arrays in memory before it writes them, and again when it reads them into NumPy, which
for a replay buffer takes gigabytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.errors import UserError
from langevinrl.storage.files import open_regular

KINDS = {
    "BOOL": "?", "I8": "<i1", "U8": "<u1", "I16": "<i2", "U16": "<u2", "I32": "<i4", "U32": "<u4",
    "I64": "<i8", "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
MAX_HEADER = 100_000_000  # bytes, the limit of the format
PIECE = 2**23  # bytes written at a time


def pieces(arrays: Mapping[str, np.ndarray]) -> Iterator[Any]:
    """Yield the bytes of the file in order, a few megabytes at a time."""
    header: dict[str, Any] = {}
    # Wide dtypes first, so that each array is aligned to its item size.
    named = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    end = 0
    for name, array in named:
        kind = NAMES.get(array.dtype.newbyteorder("<"))
        if kind is None:
            raise UserError(
                f"{name} has the dtype {array.dtype}, which a checkpoint cannot hold; "
                f"expected one of {', '.join(sorted(map(str, NAMES)))}"
            )
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
    words = json.dumps(header, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    yield len(words).to_bytes(8, "little") + words
    for _, array in named:
        yield from _bytes_of(array.astype(array.dtype.newbyteorder("<"), copy=False))


def _bytes_of(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array's bytes, without copying all of a large array that is not contiguous."""
    if not array.flags.c_contiguous and array.ndim > 1 and array.nbytes > PIECE:
        for row in array:
            yield from _bytes_of(row)
        return
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), PIECE):
        yield flat[start : start + PIECE]


def read_arrays(path: Path, mapped: bool = False) -> dict[str, np.ndarray]:
    """Return the arrays of a file; `mapped` ones are read-only views of the file on disk.

    Raises ValueError if it is no such file.
    """
    with open_regular(path) as file:
        content = np.memmap(file, np.uint8, mode="r")  # an empty file is a ValueError too
    if len(content) < 8:
        raise ValueError("it is too short for a header")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    if start > min(len(content), MAX_HEADER):
        raise ValueError("its header is longer than the file")
    try:
        header = json.loads(content[8:start].tobytes())
    except RecursionError as error:
        raise ValueError("its header is nested too deeply") from error
    if not isinstance(header, dict):
        raise ValueError("its header is no table of arrays")
    header.pop("__metadata__", None)
    data = np.asarray(content[start:])
    _require_no_gaps(header, len(data))
    found = {name: _view(name, entry, data) for name, entry in header.items()}
    return found if mapped else {name: np.array(array) for name, array in found.items()}


def _require_no_gaps(header: dict[str, Any], size: int) -> None:
    """Raise unless each byte of the data belongs to exactly one array."""
    reached = 0
    for begin, end in sorted(_offsets(name, entry) for name, entry in header.items()):
        if begin != reached:
            raise ValueError("its arrays leave gaps or overlap")
        reached = end
    if reached != size:
        raise ValueError(f"its arrays take {reached} bytes and it has {size}")


def _offsets(name: str, entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(map(_is_count, offsets))):
        raise ValueError(f"its header has no offsets for {name!r}")
    if offsets[0] > offsets[1]:
        raise ValueError(f"{name!r} ends before it begins")
    return offsets[0], offsets[1]


def _view(name: str, entry: dict[str, Any], data: np.ndarray) -> np.ndarray:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{name!r} has the unknown dtype {kind!r}")
    if not isinstance(shape, list) or len(shape) > 32 or not all(map(_is_count, shape)):
        raise ValueError(f"{name!r} has no shape")
    dtype, (begin, end) = np.dtype(KINDS[kind]), _offsets(name, entry)
    if math.prod(shape) * dtype.itemsize != end - begin or max(shape, default=0) > 2**48:
        raise ValueError(f"{name!r} has {end - begin} bytes, which do not fit its shape {shape}")
    if kind == "BOOL" and (data[begin:end] > 1).any():
        raise ValueError(f"{name!r} has truth values other than 0 and 1")
    return data[begin:end].view(dtype).reshape(shape)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
