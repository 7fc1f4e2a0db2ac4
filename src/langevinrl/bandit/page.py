"""The bandit's interactive page: one HTML file, its data inside, from the study's files."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

LABELS = {"nclql": "NC-LQL", "lql": "LQL"}
TEMPLATE = Path(__file__).with_name("page.html")


def write_page(out: Path) -> Path | None:
    """page.html beside the study's tables; None if neither LQL nor NC-LQL was studied."""
    studied = json.loads((out / "settings.json").read_text())["study"]["methods"]
    methods = {name: _method(out, name) for name in LABELS if name in studied}
    if not methods:
        return None
    with np.load(out / "data" / "exact.npz") as exact:
        facts = {
            "bound": float(exact["bound"]),
            "near": float(exact["near"]),
            "centres": np.round(exact["centres"], 6).tolist(),
            "high": exact["high"].astype(int).tolist(),
            "sweep": exact["sweep"].tolist(),
            "sigmas": np.round(exact["sigmas"], 4).tolist() if "sigmas" in exact else [],
            "exactReward": _exact_rewards(out),
            "methods": methods,
        }
    path = out / "page.html"
    # No "</" may stand in a script; base64 and numbers have none, labels might one day.
    data = json.dumps(facts, separators=(",", ":")).replace("</", "<\\/")
    template = TEMPLATE.read_text(encoding="utf-8")
    path.write_text(template.replace("/*DATA*/null", data), encoding="utf-8")
    return path


def _method(out: Path, name: str) -> dict[str, Any]:
    """Value maps as bytes, each from its least to its most; walks as 16-bit parts of the box."""
    with np.load(out / "data" / f"{name}.npz") as data:
        value, walks = data["value"], data["walks"]
    with np.load(out / "data" / "exact.npz") as exact:
        bound = float(exact["bound"])
    low, high = value.min(axis=(1, 2)), value.max(axis=(1, 2))
    scaled = (value - low[:, None, None]) / (high - low)[:, None, None]
    parts = np.round((walks + bound) / (2 * bound) * 65535).astype("<u2")
    return {
        "label": LABELS[name],
        "levels": len(value),
        "grid": value.shape[1],
        "low": np.round(low, 4).tolist(),
        "high": np.round(high, 4).tolist(),
        "value": _encode(np.round(255 * scaled).astype(np.uint8)),
        "steps": walks.shape[1] - 1,
        "walkers": walks.shape[2],
        "walks": _encode(parts),
    }


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _exact_rewards(out: Path) -> list[float]:
    """Mean reward of the exact law at each w of the sweep."""
    with (out / "sweep.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "exact"]
    return [round(float(row["reward_mean"]), 4) for row in rows]
