"""Phases of a benchmark with many agents: what was asked of the API server in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from tests.benchmarks.cluster import Arrival, Usage
from tests.benchmarks.tables import print_cells, print_header, rounded


@attrs.frozen
class Phase:
    """A part of the run.

    Attributes:
        name: What happened.
        seconds: How long it took.
        arrivals: The agents' requests.
        before: What the servers had used at its begin.
        after: The same at its end.
    """

    name: str
    seconds: float
    arrivals: Sequence[Arrival]
    before: Usage
    after: Usage

    def cells(self) -> Iterator[str]:
        """Yield the cells of its row."""
        yield self.name
        yield f"{self.seconds:.0f}"
        yield str(len(self.arrivals))
        yield rounded(len(self.arrivals) / self.seconds)
        yield str(
            max(Counter(int(one.at) for one in self.arrivals).values(), default=0)
        )
        server = self.after.api_server - self.before.api_server
        yield f"{server:.1f} ({100 * server / self.seconds:.1f} %)"
        yield f"{self.after.etcd - self.before.etcd:.1f}"
        yield f"{self.after.resident:.0f}"
        yield str(self.after.conflicts - self.before.conflicts)


PHASE_HEADER: Final = (
    "phase",
    "seconds",
    "requests",
    "per second",
    "in the busiest second",
    "CPU of the API server, s",
    "of etcd, s",
    "API server resident, MiB",
    "conflicts",
)


def print_verbs(phases: Sequence[Phase]) -> None:
    """Print what was asked for in each phase."""
    counts = [
        Counter(f"{one.verb} {one.what}" for one in each.arrivals) for each in phases
    ]
    print_header("request", *(one.name for one in phases))
    for request in sorted(set().union(*counts)):
        print_cells(request, *(str(count[request]) for count in counts))
