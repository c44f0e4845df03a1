"""``python -m tests.benchmarks.simulate``: 1,500 replicas on a machine of 64 GiB.

The command as a user types it, from its start to its end: on a machine that has room
for all replicas, and on one that refuses most of them for lack of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.benchmarks.tables import HEADER, busy_machine, print_row

REPLICAS: Final = 1500
ROUNDS: Final = 5  # processes
MACHINE: Final = "2s2n2c2t memory=16Gi"
MEMORY: Final = ("32Mi", "1Gi")  # of a replica: all fit, or few

_AIM: Final = "≤ 5"
_MANIFEST: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - {{name: app, resources: {{requests: {{cpu: 5m, memory: {memory}}}}}}}
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    options = parser.parse_args()
    print(f"Machine: {busy_machine()}; {options.rounds} processes a row\n\n{HEADER}")
    with tempfile.TemporaryDirectory(prefix="nri-simulate-") as folder:
        path = Path(folder) / "web.yaml"
        for memory in MEMORY:
            path.write_text(_MANIFEST.format(replicas=REPLICAS, memory=memory))
            found = json.loads(_simulate(path, "-o", "json"))
            placed = f"{len(found['containers'])} placed"
            times = [_times(path) for _ in range(options.rounds)]
            name = f"{REPLICAS} replicas of {memory}, {placed}"
            print_row(f"{name}: CPU, s", [cpu for cpu, _ in times], _AIM)
            print_row(f"{name}: elapsed, s", [elapsed for _, elapsed in times], _AIM)


def _times(path: Path) -> tuple[float, float]:
    """Return the seconds of CPUs that one run takes, and those from start to end."""
    before, begin = _cpu_of_children(), time.perf_counter()
    _simulate(path)
    return _cpu_of_children() - before, time.perf_counter() - begin


def _simulate(path: Path, *flags: str) -> bytes:
    program = (sys.executable, "-m", "nri_resmgr", "simulate")
    return subprocess.run(
        (*program, "--topology", MACHINE, *flags, path),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
