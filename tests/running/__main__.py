"""Races of 10,000 events, on this kernel and on a larger machine."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.running.container_cgroups import (
    ContainerCgroups,
    FolderCgroups,
    KernelCgroups,
)
from tests.running.races import run_races


def main() -> int:
    """Print what was seen; an error is a law that does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.running", description=__doc__
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
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
        print(f"{where}: {tally}, {time.monotonic() - begin:.0f} s", flush=True)
        leaks += tally.leaks()
    if leaks:
        print(f"more than at first: {leaks}", file=sys.stderr)
    return int(bool(leaks))


if __name__ == "__main__":
    sys.exit(main())
