"""Interactive page of the bandit study: one HTML file that contains its data."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.registry import label_of
from langevinrl.studies.bandit.files import StudyData

TEMPLATE = Path(__file__).with_name("page.html")


def write_page(out: Path) -> Path | None:
    """Write page.html into a study folder; return None if it has neither LQL nor NC-LQL."""
    study = StudyData(out)
    methods = {name: _method(study, name) for name in ("nclql", "lql") if name in study.data}
    if not methods:
        return None
    exact = study.exact
    content = {
        "bound": float(exact["bound"]),
        "near": float(exact["near"]),
        "centres": np.round(exact["centres"], 6).tolist(),
        "high": exact["high"].astype(int).tolist(),
        "sweep": exact["sweep"].tolist(),
        "sigmas": np.round(exact["sigmas"], 4).tolist() if "sigmas" in exact else [],
        "exactReward": [
            round(float(row["reward_mean"]), 4) for row in study.sweep if row["method"] == "exact"
        ],
        "methods": methods,
    }
    path = out / "page.html"
    # A script may not contain "</"; a label could.
    data = json.dumps(content, separators=(",", ":")).replace("</", "<\\/")
    template = TEMPLATE.read_text(encoding="utf-8")
    path.write_text(template.replace("/*DATA*/null", data), encoding="utf-8")
    return path


def _method(study: StudyData, name: str) -> dict[str, Any]:
    """Encode value maps as bytes from minimum to maximum, and chains as 16-bit parts of the box."""
    value, chains = study.data[name]["value"], study.data[name]["page_chains"]
    bound = float(study.exact["bound"])
    low, high = value.min(axis=(1, 2)), value.max(axis=(1, 2))
    scaled = (value - low[:, None, None]) / (high - low)[:, None, None]
    parts = np.round((chains + bound) / (2 * bound) * 65535).astype("<u2")
    return {
        "label": label_of(name),
        "levels": len(value),
        "grid": value.shape[1],
        "low": np.round(low, 4).tolist(),
        "high": np.round(high, 4).tolist(),
        "value": _encode(np.round(255 * scaled).astype(np.uint8)),
        "steps": chains.shape[1] - 1,
        "numChains": chains.shape[2],
        "chains": _encode(parts),
    }


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()
