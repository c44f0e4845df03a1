"""The pure benchmarks (``bench_*.py``, by pytest-benchmark) as rows of a table."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent
_MICRO: Final = 1e6


def allocator_rows() -> Iterator[tuple[str, tuple[float, float, float], str]]:
    """Run them; yield name, (median, lowest, highest) in µs, and the aim.

    A benchmark with an aim has it in ``benchmark.extra_info["aim"]``.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        files = sorted(map(str, _FOLDER.glob("bench_*.py")))
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *files)
        subprocess.run(
            (*command, f"--benchmark-json={report}"), check=True, stdout=sys.stderr
        )
        for row in json.loads(report.read_text())["benchmarks"]:
            yield _name(row), _figures(row["stats"]), row["extra_info"].get("aim", "")


def _name(row: dict[str, Any]) -> str:
    return str(row["name"]).removeprefix("test_").replace("_", " ") + ", µs"


def _figures(stats: dict[str, Any]) -> tuple[float, float, float]:
    median, low, high = (stats[key] * _MICRO for key in ("median", "min", "max"))
    return median, low, high
