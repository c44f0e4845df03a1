"""``make bench``: measures and prints the tables of docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nri_resmgr.host.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks import measure
from tests.benchmarks.allocators import allocator_rows
from tests.benchmarks.plugins import Programs

_SOURCE = Path(__file__).parents[2]
_LARGE = "2s2n14c2t"  # 112 CPUs
_HEADER = "| what | median | range | aim |\n|---|---|---|---|"


def main() -> None:
    """Print one section after the other, as soon as each is measured."""
    print(f"Machine: {_machine()}\n")
    with tempfile.TemporaryDirectory(prefix="nri-bench-") as folder:
        programs = Programs.install(Path(folder), _SOURCE)
        noop = (programs.python, "-I", programs.noop)
        daemon = (programs.daemon, "--nri-socket")
        print(f"### Sessions\n\n{_HEADER}")
        _row("echo of 2.9 kB by bare asyncio, µs", measure.echo_times(programs))
        _row(
            "CreateContainer, handler does nothing, µs",
            measure.creation_times(noop),
            "≤ 250",
        )
        _synchronization("plugin that does nothing", noop, "≤ 60")
        _synchronization("the daemon", daemon, "≤ 300")
        _row(
            "start of a Python that imports protobuf, PyYAML, attrs, structlog, ms",
            measure.import_times(programs),
        )
        _row(
            "start to registered, does nothing, ms", measure.start_times(noop), "≤ 200"
        )
        _row(
            "start to registered, the daemon, ms", measure.start_times(daemon), "≤ 200"
        )
        write_tree(sysfs_files(parse_spec(_LARGE)), Path(folder) / "host")
        large = (programs.daemon, "--host-root", Path(folder) / "host", "--nri-socket")
        what = "start to registered, the daemon, 112 CPUs, ms"
        _row(what, measure.start_times(large), "≤ 220")
        for busy in (10, 100, 500):
            what = f"CreateContainer, the daemon, {busy} containers, ms"
            _row(what, measure.decision_times(daemon, busy))
    print(f"\n### Allocators\n\n{_HEADER}")
    for what, figures, aim in allocator_rows():
        _row(what, figures, aim)


def _synchronization(who: str, command: measure.Command, aim: str) -> None:
    times, sizes = measure.synchronization(command)
    _row(f"Synchronize, 250 pods, 500 containers, 1.3 MB, {who}, ms", times, aim)
    _row(f"resident after it, {who}, MiB", sizes, "≤ 32")


def _row(what: str, figures: Sequence[float], aim: str = "") -> None:
    median = statistics.median(figures)
    low, high = min(figures), max(figures)
    print(f"| {what} | {_round(median)} | {_round(low)} to {_round(high)} | {aim} |")
    sys.stdout.flush()


def _round(figure: float) -> str:
    return f"{figure:.3g}" if figure < 100 else f"{figure:.0f}"


def _machine() -> str:
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return (
        f"{os.cpu_count()} CPUs of {model}, Linux {platform.release()}, "
        f"Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
