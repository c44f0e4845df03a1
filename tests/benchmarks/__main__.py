"""``make bench``: measures and prints the tables of docs/benchmarks.md."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import balloons, churn, measure
from tests.benchmarks.allocators import allocator_rows
from tests.benchmarks.awake import awake_cpus
from tests.benchmarks.everything import BUILT_IN
from tests.benchmarks.manager import manager_rows
from tests.benchmarks.plugins import Programs
from tests.benchmarks.tables import HEADER, machine, print_row, rounded

_SOURCE = Path(__file__).parents[2]

_CHURN_HEADER = (
    "| CPUs | containers | CreateContainer p50, ms | p99, ms "
    "| StopContainer p50, ms | p99, ms | aims, p50 and p99 | Go, p50 of a creation |\n"
    "|---|---|---|---|---|---|---|---|"
)

# By containers: our aims for the median and the 99th percentile, and what the Go
# implementation of the policy takes for a creation; milliseconds.
_TOPOLOGY_AWARE = {
    10: ("≤ 0.8, ≤ 5", "5"),
    100: ("≤ 1, ≤ 5", "21"),
    250: ("", ""),
    500: ("≤ 3, ≤ 15", "120"),
}
_BALLOONS = {
    10: ("≤ 0.8, ≤ 5", "2.3"),
    100: ("≤ 1, ≤ 5", "9"),
    250: ("", ""),
    500: ("≤ 3, ≤ 15", "64"),
}


def main() -> None:
    """Print one section after the other, as soon as each is measured."""
    with awake_cpus() as awake:
        print(f"Machine: {machine()}; idle CPUs {'wait awake' if awake else 'sleep'}\n")
        _measure()


def _measure() -> None:
    with tempfile.TemporaryDirectory(prefix="nri-bench-") as folder:
        programs = Programs.install(Path(folder), _SOURCE)
        print(f"### Sessions\n\n{HEADER}")
        _sessions(programs, (programs.python, "-I", programs.noop))
        print("\n### Topology-aware policy\n")
        _policy(programs, "", _TOPOLOGY_AWARE)
        print("\n### Balloons policy\n")
        _policy(programs, balloons.DOCUMENT, _BALLOONS)
        print(f"\n### Resource manager\n\n{HEADER}")
        for what, figures, aim in manager_rows(programs.daemon):
            print_row(what, figures, aim)
    print(f"\n### Allocators\n\n{HEADER}")
    for what, figures, aim in allocator_rows():
        print_row(what, figures, aim)


def _sessions(programs: Programs, noop: measure.Command) -> None:
    print_row("echo of 2.9 kB by bare asyncio, µs", measure.echo_times(programs))
    creations = measure.creation_times(noop)
    print_row("CreateContainer, handler does nothing, µs", creations, "≤ 250")
    times, sizes = measure.synchronization(noop)
    what = "Synchronize, 250 pods, 500 containers, 1.3 MB, handler does nothing, ms"
    print_row(what, times, "≤ 60")
    print_row("resident after it, MiB", sizes, "≤ 32")
    what = "start of a Python that imports protobuf, PyYAML, attrs, structlog, ms"
    print_row(what, measure.import_times(programs))
    starts = measure.start_times(noop)
    print_row("start to registered, does nothing, ms", starts.registered, "≤ 200")
    daemon = (programs.daemon, "--state-dir", programs.state, "--nri-socket")
    starts = measure.start_times(daemon)
    print_row("start to registered, the daemon, ms", starts.registered, "≤ 200")


def _policy(
    programs: Programs, document: str, busy: Mapping[int, tuple[str, str]]
) -> None:
    print(HEADER)
    _starts(programs, document)
    print(f"\n{_CHURN_HEADER}")
    for cpus in churn.MACHINES:
        for containers, (aims, go) in busy.items():
            found = churn.churn(programs.daemon, cpus, containers, document)
            figures = [(*one.create, *one.stop) for one in found]
            cells = [_cell(column) for column in zip(*figures, strict=True)]
            print(f"| {cpus} | {containers} | {' | '.join(cells)} | {aims} | {go} |")
            sys.stdout.flush()


def _starts(programs: Programs, document: str) -> None:
    for cpus in churn.MACHINES:
        same = document or BUILT_IN
        other = same.replace("cpu: 750m", "cpu: 1750m").replace('"2"', '"3"')
        assert other != same
        found = churn.starts(programs.daemon, cpus, same)
        aims = ("≤ 260", "≤ 20", "≤ 150") if cpus == churn.USUAL_CPUS else ("", "", "")
        print_row(f"start to registered, {cpus} CPUs, ms", found.registered, aims[0])
        what = f"Configure with the text of last time, {cpus} CPUs, ms"
        print_row(what, found.configuring, aims[1])
        changed = churn.starts(programs.daemon, cpus, same, other)
        what = f"Configure with another text, {cpus} CPUs, ms"
        print_row(what, changed.configuring, aims[2])
    found = churn.starts_with_file(
        programs.daemon, churn.USUAL_CPUS, document or BUILT_IN
    )
    what = f"start to registered, {churn.USUAL_CPUS} CPUs, document in a file, ms"
    print_row(what, found.registered)
    arrived = churn.arrivals(programs.daemon, churn.USUAL_CPUS, 500, document)
    what = "Synchronize of 500 containers in as many pods, ms"
    print_row(what, [one.synchronize for one in arrived], "≤ 300")
    print_row("resident after it, MiB", [one.resident for one in arrived])
    what = f"resident when {churn.WARM_UP + churn.TURNOVER} came and went, MiB"
    print_row(what, [one.resident_later for one in arrived], "≤ 45")


def _cell(figures: Sequence[float]) -> str:
    low, high = min(figures), max(figures)
    return f"{rounded(statistics.median(figures))} ({rounded(low)} to {rounded(high)})"


if __name__ == "__main__":
    main()
