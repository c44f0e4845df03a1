"""``make bench-paired BASE=rev``: this tree against another commit, in one run.

Processes of both take turns, so that changes of the machine's speed within minutes
affect both.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks import balloons, churn
from tests.benchmarks.awake import awake_cpus
from tests.benchmarks.measure import Command
from tests.benchmarks.plugins import Programs, running

_SOURCE: Final = Path(__file__).parents[2]
_STARTS: Final = 15  # pairs, as one start takes half as long again as another
_CONTAINERS: Final = (10, 100, 500)
_POLICIES: Final = {"topology-aware": "", "balloons": balloons.DOCUMENT}
_HEADER: Final = (
    "| what | before | after | after / before, pair by pair |\n|---|---|---|---|"
)


def main() -> None:
    """Print one row after the other, as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument(
        "--pairs", type=int, default=7, help="of processes, for each row (%(default)s)"
    )
    options = parser.parse_args()
    base = options.base
    with tempfile.TemporaryDirectory(prefix="nri-bench-") as name, awake_cpus():
        folder = Path(name)
        old = _install(folder / "old", _checkout(base, folder / "source"))
        new = _install(folder / "new", _SOURCE)
        print(f"Before: {base}\n\n{_HEADER}")
        _compare(old, new, options.pairs)


def _compare(old: Programs, new: Programs, pairs: int) -> None:
    cpus = churn.USUAL_CPUS
    with churn.node(cpus) as here:
        before, after = here.command(old.daemon), here.command(new.daemon)
        for policy, document in _POLICIES.items():
            _row(
                f"{policy}, start to registered, ms",
                partial(_start, document),
                (before, after),
                _STARTS,
            )
            for containers in _CONTAINERS:
                rows = _churn(here, (before, after), containers, document, pairs)
                for what, found in rows.items():
                    _print(f"{policy}, {containers} containers, {what}", found)


def _churn(
    here: churn.Node,
    commands: tuple[Command, Command],
    containers: int,
    document: str,
    pairs: int,
) -> dict[str, list[tuple[float, float]]]:
    """Return pairs of figures by their names."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for _ in range(pairs):
        before, after = (
            churn.churned(here, command, containers, document) for command in commands
        )
        for place, what in enumerate(("p50", "p99")):
            name = f"CreateContainer {what}, ms"
            rows.setdefault(name, []).append(
                (before.create[place], after.create[place])
            )
            name = f"StopContainer {what}, ms"
            rows.setdefault(name, []).append((before.stop[place], after.stop[place]))
        old, new = (
            churn.arrived(here, command, containers, document) for command in commands
        )
        rows.setdefault("Synchronize, ms", []).append(
            (old.synchronize, new.synchronize)
        )
        rows.setdefault("resident after a turnover, MiB", []).append(
            (old.resident_later, new.resident_later)
        )
    return rows


def _start(document: str, command: Command) -> float:
    with running(command, document=document) as plugin:
        return 1e3 * plugin.start


def _row(
    what: str,
    measure: Callable[[Command], float],
    commands: tuple[Command, Command],
    pairs: int,
) -> None:
    before, after = commands
    _print(what, [(measure(before), measure(after)) for _ in range(pairs)])


def _print(what: str, pairs: Sequence[tuple[float, float]]) -> None:
    before, after = (_cell(column) for column in zip(*pairs, strict=True))
    ratio = _cell([new / old for old, new in pairs])
    print(f"| {what} | {before} | {after} | {ratio} |")
    sys.stdout.flush()


def _cell(figures: Sequence[float]) -> str:
    median = statistics.median(figures)
    return f"{median:.3g} ({min(figures):.3g} to {max(figures):.3g})"


def _checkout(commit: str, folder: Path) -> Path:
    """Return a folder with the files of a commit."""
    folder.mkdir()
    archive = subprocess.run(
        ("git", "-C", _SOURCE, "archive", commit), check=True, capture_output=True
    )
    subprocess.run(("tar", "-x", "-C", folder), check=True, input=archive.stdout)
    return folder


def _install(folder: Path, source: Path) -> Programs:
    folder.mkdir()
    return Programs.install(folder, source)


if __name__ == "__main__":
    main()
