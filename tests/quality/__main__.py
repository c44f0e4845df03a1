"""``make quality``: places the containers of many lives, and writes the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

import attrs

from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.docs.markdown import table
from tests.docs.regions import rewritten
from tests.quality.comparison import against_kubelet
from tests.quality.exhaustive import MOST_CPUS, ExhaustiveNode
from tests.quality.kubelet_manager import BEST_EFFORT, SINGLE_NUMA_NODE, KubeletNode
from tests.quality.life import arrivals, live
from tests.quality.measures import Measured, Watched
from tests.quality.node import Placer
from tests.quality.policies import POLICIES, PolicyNode
from tests.structure.source import ROOT

MACHINES: Final = {
    "1 socket, 16 CPUs": "1s1n8c2t memory=64Gi",
    "2 sockets, 16 CPUs": "2s1n4c2t memory=32Gi",
    "2 sockets, 80 CPUs": "2s1n20c2t memory=160Gi",
    "2 sockets with 2 nodes each, 112 CPUs": "2s2n14c2t memory=112Gi",
    "4 sockets, 224 CPUs": "4s1n28c2t memory=224Gi",
}
LOADS: Final = (0.7, 0.9, 1.1)
SEEDS: Final = (1, 2, 3)

PAGE: Final = ROOT / "docs" / "placement-quality.md"
HEADER: Final = (
    "placed by",
    "containers",
    "refused",
    "in one node",
    "cores shared",
    "cores above the fewest",
    "memory near",
    "shared time short",
    "moved",
    "updates per event",
)

QUALITY: Final = "quality"
"""The region of the page with the tables."""

AGAINST_KUBELET: Final = "quality against the kubelet"
"""The region of the page that counts where policies are worse."""


def placers(machine: Machine) -> Iterator[tuple[str, Callable[[Machine], Placer]]]:
    """Yield what can place containers on a machine, by name."""
    for name in POLICIES:
        yield name, partial(PolicyNode, policy=name)
    for policy in (BEST_EFFORT, SINGLE_NUMA_NODE):
        yield f"kubelet, {policy}", partial(KubeletNode, policy=policy)
    if len(machine.online) <= MOST_CPUS:
        yield "exhaustive search", ExhaustiveNode


def measure(spec: str, placer: str, load: float, seed: int) -> Measured:
    """Let a node live once."""
    machine = parse_spec(spec)
    node = Watched(machine, dict(placers(machine))[placer](machine))
    live(machine, arrivals(machine, seed, load), node.create, node.stop)
    return node.measured


def row_of(placer: str, lives: list[Measured]) -> tuple[str, ...]:
    """Return the cells of one placer, of all its lives together."""
    sums = {
        field.name: sum(getattr(one, field.name) for one in lives)
        for field in attrs.fields(Measured)
    }

    def part(name: str, whole: str) -> str:
        return f"{100 * sums[name] / sums[whole]:.1f} %" if sums[whole] else "-"

    return (
        placer,
        str(sums["sent"]),
        str(sums["refused"]),
        part("in_one_node", "exclusive"),
        part("cores_shared", "cores"),
        f"{sums['cores_above'] / (sums['granted'] or 1):.2f}",
        part("near", "placed"),
        part("short", "asked"),
        str(sums["moved"]),
        f"{sums['updates'] / sums['events']:.2f}",
    )


def heading(machine: str, load: float) -> str:
    """Return the heading of a table.

    Args:
        machine: A key of `MACHINES`.
        load: One of `LOADS`.
    """
    return f"### {machine}, load {100 * load:.0f} %"


def sections() -> Iterator[str]:
    """Yield a table for each machine and load."""
    with ProcessPoolExecutor(initializer=_log_errors_only) as pool:
        for title, spec in MACHINES.items():
            for load in LOADS:
                names = [name for name, _ in placers(parse_spec(spec))]
                found = {
                    name: [pool.submit(measure, spec, name, load, one) for one in SEEDS]
                    for name in names
                }
                rows = [
                    row_of(name, [one.result() for one in lives])
                    for name, lives in found.items()
                ]
                yield f"{heading(title, load)}\n\n{table(HEADER, rows)}"


def _log_errors_only() -> None:
    configure_logging("error", LogFormat.TEXT)
    levels.set("app.observing.refusal_log", "error")


def main() -> None:
    """Write the tables into the page."""
    body = "\n\n".join(sections())
    print(body)
    text = PAGE.read_text(encoding="utf-8")
    compared = against_kubelet(body)
    regions = {QUALITY: lambda _: body, AGAINST_KUBELET: lambda _: compared}
    new = rewritten(text, regions, marker="measured")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
