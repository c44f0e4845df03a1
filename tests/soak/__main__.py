"""``make soak``: a million events; prints the table of docs/soak.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import Figures, soak

_ROW = (
    "| {events:,} | {cpu:.3f} | {p50:.3f} | {p99:.2f} | {rss:.1f} | {objects:,} "
    "| {series} | {files} | {threads} | {refused:,} |"
)


def main() -> int:
    """Print each row as soon as it is measured, and at the end what has grown."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    print(
        "| events | CPU, ms | p50, ms | p99, ms | resident, MiB | objects | series "
        "| files | threads | refused |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    every, rows = options.events // 10, []
    with tempfile.TemporaryDirectory(prefix="nri-soak-") as folder:
        for row in soak(Path(folder), options.events, every):
            rows.append(row)
            _print(row)
    return _judge(rows[0], rows[-1])


def _print(row: Figures) -> None:
    print(
        _ROW.format(
            events=row.events,
            cpu=row.cpu * 1e3,
            p50=row.latency * 1e3,
            p99=row.late * 1e3,
            rss=row.size.resident / 1024,
            objects=sum(row.objects.values()),
            series=row.series,
            files=row.size.files,
            threads=row.size.threads,
            refused=row.refused,
        ),
        flush=True,
    )


def _judge(first: Figures, last: Figures) -> int:
    memory = last.size.resident / first.size.resident
    cpu, p50 = last.cpu / first.cpu, last.latency / first.latency
    ratios = f"memory {memory:.3f}, CPU {cpu:.2f}, p50 {p50:.2f}"
    print(f"\nThe last tenth by the first: {ratios}")
    grown = {
        kind: count - first.objects.get(kind, 0)
        for kind, count in last.objects.items()
        if count > 1.05 * first.objects.get(kind, 0) + 200
    }
    for kind, more in sorted(grown.items(), key=lambda item: -item[1]):
        print(f"more objects: {more} of {kind}", file=sys.stderr)
    return int(memory > 1.05 or bool(grown))


if __name__ == "__main__":
    sys.exit(main())
