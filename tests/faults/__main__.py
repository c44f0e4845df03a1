"""``make faults``: the law of faults over all points, errors and times, and pairs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.faults.cases import Case, chosen, night, pairs
from tests.faults.fault_law import Choose, Outcome, hold_all
from tests.faults.phases import END, PHASES, START
from tests.faults.system_calls import Point

# With these, a night takes some 40 minutes of two cores.
NIGHTS: Final = 3
PAIRS: Final = 20
NODES: Final = 6  # they mostly wait


def main() -> int:
    """Print each outcome; a broken law with the rest of the log.

    The machine may be too busy for a daemon to do anything in 30 s. So cases that break
    the law are repeated, one at a time; then they decide.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "what",
        nargs="*",
        default=(START, *PHASES, END),
        help="a phase, or a case as this prints it, to repeat it",
    )
    parser.add_argument("--quick", action="store_true", help="one case for each point")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="that have all")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="for each phase")
    parser.add_argument(
        "--seed",
        type=int,
        default=datetime.now(tz=UTC).toordinal(),
        help="default: the day",
    )
    parser.add_argument("--nodes", type=int, default=NODES, help="at a time")
    options = parser.parse_args()
    cases = [Case.from_text(one) for one in options.what if ":" in one]
    phases = [one for one in options.what if ":" not in one]

    def choose(phase: str, counts: Counter[Point]) -> Iterator[Case]:
        if options.quick:
            yield from chosen(phase, counts)
        else:
            yield from night(phase, counts, options.seed, options.nights)
            yield from pairs(phase, counts, options.pairs, options.seed)

    if phases and not options.quick:
        turn = options.seed % options.nights + 1
        print(f"seed {options.seed}: night {turn} of {options.nights}", flush=True)
    outcomes = _hold(cases, phases, choose, options.nodes)
    _summarize(outcomes)
    broken = [one.case for one in outcomes if one.broken]
    if broken and len(outcomes) > 1:
        print(f"\n{len(broken):,} broken; each again, alone", flush=True)
        outcomes = _hold(broken, (), choose, nodes=1)
        _summarize(outcomes)
    return int(any(one.broken for one in outcomes))


def _hold(
    cases: Iterable[Case], phases: Iterable[str], choose: Choose, nodes: int
) -> list[Outcome]:
    with tempfile.TemporaryDirectory(
        prefix="nri-faults-", ignore_cleanup_errors=True
    ) as folder:
        return asyncio.run(
            hold_all(
                Path(folder),
                cases,
                phases=phases,
                choose=choose,
                nodes=nodes,
                report=_print,
            )
        )


def _print(outcome: Outcome) -> None:
    notes = [f"{outcome.seconds:.1f} s"]
    notes += ["ended and started again"] if outcome.has_ended else []
    notes += [] if outcome.is_hit else ["no such call"]
    notes += [f"health fails: {outcome.admitted}"] if outcome.admitted else []
    notes += ["CRASHED"] if outcome.has_crashed else []
    notes += [f"BROKEN: {outcome.broken}"] if outcome.broken else []
    lines = [outcome.detail] if outcome.detail else []
    print(*lines, f"{outcome.case}: {', '.join(notes)}", sep="\n", flush=True)


def _summarize(outcomes: list[Outcome]) -> None:
    hit = [one for one in outcomes if one.is_hit]
    broken = [one for one in outcomes if one.broken]
    ended = sum(one.has_ended for one in hit)
    crashed = sum(one.has_crashed for one in hit)
    slowest = max((one.seconds for one in hit), default=0.0)
    print(
        f"{len(outcomes):,} cases, {len(hit):,} of them with a fault, {ended:,} with "
        f"another process, {crashed:,} after a crash, {slowest:.1f} s at most; "
        f"{len(broken):,} broken"
    )
    for one in broken:
        print(f"{one.case}: {one.broken}")


if __name__ == "__main__":
    sys.exit(main())
