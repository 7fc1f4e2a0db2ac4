"""Free memory of the machine and of a container's limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from langevinrl.replay.memory import free_memory


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """Write the files that Linux has, with 8 GiB free."""
    content = {"proc/meminfo": "MemTotal: 1 kB\nMemAvailable: 8388608 kB\n"}
    content |= {"proc/self/cgroup": groups}
    for name, text in (content | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def two(place: str, limit: object, used: int, cached: int = 0) -> dict[str, str]:
    stat = f"anon 1\ninactive_file {cached}\n"
    return {
        f"{place}/memory.max": f"{limit}\n",
        f"{place}/memory.current": f"{used}\n",
        f"{place}/memory.stat": stat,
    }


def one(place: str, limit: int, used: int, cached: int = 0) -> dict[str, str]:
    return {
        f"{place}/memory.limit_in_bytes": f"{limit}\n",
        f"{place}/memory.usage_in_bytes": f"{used}\n",
        f"{place}/memory.stat": f"inactive_file 1\ntotal_inactive_file {cached}\n",
    }


TOP = "sys/fs/cgroup"
CASES = {
    "no groups at all": ("", {}, 8 * 2**30),
    "no limit": ("0::/\n", two(TOP, "max", 5), 8 * 2**30),
    "a container": ("0::/\n", two(TOP, 3000, 1000, 300), 2300),
    "a job within it": (
        "0::/slice/job\n", two(f"{TOP}/slice", 5000, 100) | two(f"{TOP}/slice/job", "max", 9), 4900,
    ),
    "the tighter of two": (
        "0::/slice/job\n", two(f"{TOP}/slice", 5000, 100) | two(f"{TOP}/slice/job", 700, 9), 691,
    ),
    "version 1": ("4:memory:/job\n2:cpu:/\n", one(f"{TOP}/memory/job", 3000, 1000, 50), 2050),
    "version 1 seen from inside": ("4:memory:/docker/ab\n", one(f"{TOP}/memory", 3000, 10), 2990),
    "version 1 without": ("4:memory:/\n", one(f"{TOP}/memory", 2**63 - 4096, 10), 8 * 2**30),
    "over its limit": ("0::/\n", two(TOP, 100, 200), 0),
    "not numbers": ("0::/\nodd\n", two(TOP, "?", 200), 8 * 2**30),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_free_memory_respects_the_tightest_limit(name: str, tmp_path: Path) -> None:
    groups, files, expected = CASES[name]
    assert free_memory(machine(tmp_path, groups, files)) == expected
