"""Races of 10,000 events, on this kernel and on a larger machine."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.running.container_cgroups import (
    ContainerCgroups,
    FolderCgroups,
    KernelCgroups,
)
from tests.running.races import Tally, Weather, run_races

_HEADER: Final = (
    "| where | events | exclusive containers, alone at their start | refused | kills "
    "| of which between two writes of a series |"
)


def main() -> int:
    """Print the table of docs/soak.md; an error is a law that does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.running", description=__doc__
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    options = parser.parse_args()
    print(f"seed {options.seed}\n\n{_header()}", flush=True)
    leaks = ""
    for where in ("this kernel", "2s2n4c2t, in files"):
        with tempfile.TemporaryDirectory(prefix="nri-races-") as name:
            folder, begin = Path(name), time.monotonic()
            cgroups: ContainerCgroups = (
                KernelCgroups()
                if where == "this kernel"
                else FolderCgroups(folder, "2s2n4c2t memory=64Gi")
            )
            races = run_races(
                folder, cgroups, options.seed, options.events, needs_cut=True
            )
            tally = asyncio.run(races)
        print(_row(where, tally, time.monotonic() - begin), flush=True)
        leaks += tally.leaks()
    if leaks:
        print(f"more than at first: {leaks}", file=sys.stderr)
    return int(bool(leaks))


def _header() -> str:
    held = " | ".join(f"until all held, at most, s: {one}" for one in Weather)
    head = f"{_HEADER} {held} | run, s |"
    return f"{head}\n{'|---' * (head.count('|') - 1)}|"


def _row(where: str, tally: Tally, seconds: float) -> str:
    held = (f"{tally.worst.get(one, 0.0):.2g}" for one in Weather)
    counts = tally.events, tally.starts, tally.refused, tally.kills, tally.cuts
    cells = (where, *(f"{one:,}" for one in counts), *held, f"{seconds:.0f}")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
