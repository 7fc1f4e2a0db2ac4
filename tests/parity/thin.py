"""Keeps of the released implementations' numbers what the tests read: python thin.py FROM.

FROM holds one .npz per method with the inputs, every random draw and the outputs of a few float64
updates; what is kept goes to data/, compressed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "data"
BATCH = ("obs", "action", "reward", "done", "next_obs")
CHAINS = ("start", "chain")
DRAWS: dict[str, tuple[str, ...]] = {
    "nclql": ("start", "chain", "level", "pert", "act_obs", "act_start", "act_chain"),
    "sac": ("eps",),
    "qsm": (*CHAINS, "jit"),
    "dipo": (*CHAINS, "t", "fwd", "improved"),
    "sdac": (*CHAINS, "jit", "t", "fwd", "rev"),
    "dpmd": (*CHAINS, "jit", "t", "fwd"),
    "qvpo": (*CHAINS,),
    "dacer": (*CHAINS, "jit", "z"),
}
ONE_CHAIN = ("dipo", "dacer")  # their action is a single draw; the table has four
# Chains of the policy's own step, which is due at every second update; the others have none.
POLICY_DRAWS = {"sdac": ("start", "chain", "jit"), "dacer": ("start", "chain", "jit")}
LAST = {"nclql": 5, "sdac": 3, "dpmd": 3, "qvpo": 3}  # updates kept; four in the others


def is_kept(method: str, name: str) -> bool:
    kind, _, rest = name.partition("/")
    if kind == "in":
        return rest in (*BATCH, *DRAWS[method])
    update = rest[0]
    if "weight" in rest or "bias" in rest or "|" in rest:  # weights: the first and the last
        start = update == "0"
        if method == "qvpo" and ("policy" in rest or "poicy" in rest):
            return rest.startswith(("0.policy", "1.policy"))
        return start or int(update) == LAST.get(method, 4)
    return method != "nclql" or rest[2:] in (
        "td_q1_loss", "td_q2_loss", "qt1_loss", "qt2_loss", "act", "Q0", "Q1",
    )  # fmt: skip


def _drop_unused(method: str, kept: dict[str, np.ndarray]) -> None:
    """Draws that no update takes become zeros, which pack well; later updates' are left out."""
    for name in kept:
        if name.startswith("in/") and not name.startswith("in/act_"):
            kept[name] = kept[name][: LAST.get(method, 4)]
    if method in ONE_CHAIN:
        kept |= {f"in/{name}": kept[f"in/{name}"][:, :, :1] for name in CHAINS}
    for name in [name for name in kept if name.startswith(("out/0.target", "out/0/target"))]:
        twin = name.replace("target_poicy", "policy").replace("target_", "")
        if np.array_equal(kept[name], kept[twin]):  # target copies start equal in most tables
            del kept[name]
    for name in ("start", "chain", "jit"):
        if method != "nclql" and f"in/{name}" in kept:
            unused = slice(1, None, 2) if name in POLICY_DRAWS.get(method, ()) else slice(None)
            kept[f"in/{name}"][unused, 1] = 0.0
    for name in ("rev", "fwd") if method in ("sdac", "dpmd") else ():
        if f"in/{name}" in kept:
            kept[f"in/{name}"][1::2] = 0.0


def main(source: Path) -> None:
    HERE.mkdir(exist_ok=True)
    for method in DRAWS:
        with np.load(source / f"{method}.npz", allow_pickle=False) as table:
            kept = {name: table[name] for name in table.files if is_kept(method, name)}
        _drop_unused(method, kept)
        np.savez_compressed(HERE / f"{method}.npz", **kept)  # type: ignore[arg-type]
        print(method, (HERE / f"{method}.npz").stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
