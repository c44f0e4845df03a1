"""``nri-resmgr simulate``: where the containers of a workload would run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.chosen_machine import named_machine, this_machine
from nri_resmgr.cli.flags import Parser, add_host_flags, add_output
from nri_resmgr.cli.tables import format_changes, format_table
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import REFUSED, changes_between
from nri_resmgr.scenario.findings import Findings, PlacedContainer, findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode, RefusedRequest
from nri_resmgr.scenario.picture import picture_html, picture_svg
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.steps import LeftOut, Scenario
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError, format_cpus
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable, printable_json

_EXAMPLES: Final = """\
examples:
  nri-resmgr simulate --topology 2s2n8c2t pods.yaml         a synthetic machine
  nri-resmgr simulate --topology node7.tgz deployment.yaml  a dump of another one
  nri-resmgr simulate --config-file a.yaml --against b.yaml pods.yaml
  nri-resmgr simulate --picture node.svg pods.yaml          this machine, as a picture

WORKLOAD is a scenario, or Kubernetes manifests of pods, Deployments and the like.

exit status: 0 done, also if containers were refused; 1 the two configurations of
--against differ; 2 bad input
"""

# Increased when a key of the JSON form is removed or changes its meaning.
FORMAT: Final = 1

_SUFFIXES: Final = (".svg", ".html")
_PLACEMENTS: Final = (
    *("container", "qos", "asks", "memory", "CPUs", "exclusive", "nodes", "pool"),
    "rule",
)
_POOLS: Final = ("pool", "kind", "CPUs", "granted", "free", "largest", "memory")
_MOST_NAMES: Final = 5
_CHANGES: Final = ("container", "what", "before", "after")


@dataclass(eq=False)
class BadFile(InputError):
    """A file of the command line has a mistake."""

    path: Path
    mistake: Exception

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}"


@dataclass(eq=False)
class NoPicture(InputError):
    """A picture cannot be written."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"--picture {self.path}: {self.why}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Place a workload by the real policy, on this machine or on a synthetic one. "
        "Show the placements, what is refused, and the headroom."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "workload", type=Path, metavar="WORKLOAD", help="a scenario, or manifests"
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a synthetic machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is the scenario's, or this machine",
    )
    add_host_flags(parser)
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="FILE",
        help="configuration to use, default the scenario's",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="another configuration; show only what differs with it",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="file to draw the machine in, .svg or .html",
    )
    add_output(parser, "table", "json")


def run(options: argparse.Namespace) -> int:
    """Play the workload, with one or two configurations, and print the result."""
    if options.picture and options.picture.suffix not in _SUFFIXES:
        expected = " or ".join(_SUFFIXES)
        raise NoPicture(options.picture, f"expected a name that ends in {expected}")
    # The tables show the decisions; only warnings, as of the configuration, are new.
    configure_logging("warning", LogFormat.TEXT)
    levels.set("app.observing.refusal_log", "error")
    text = read_text_file(options.workload)
    try:
        scenario = read_workload(text)
    except InputError as mistake:
        raise BadFile(options.workload, mistake) from None
    spec = options.topology or scenario.machine
    machine = named_machine(spec) if spec else this_machine(options)
    # A synthetic machine has no cgroups, unless their folder is named besides.
    has_host = not spec or options.host_root != "/"
    tree = HostTree(options.host_root) if has_host else None
    found = _play(machine, scenario, options.config_file, tree)
    if options.picture:
        _draw(found, options.picture)
    if options.against is None:
        print(show_findings(found, options.output, scenario.left_out))
        return 0
    other = _play(machine, scenario, options.against, tree)
    text, differ = show_changes(found, other, options.output, scenario.left_out)
    print(text)
    return int(differ)


def _play(
    machine: Machine,
    scenario: Scenario,
    config_file: Path | None,
    tree: Tree | None,
) -> Findings:
    document = read_text_file(config_file) if config_file else scenario.document
    try:
        node = InProcessNode(machine, document, tree)
    except InputError as mistake:
        raise BadFile(config_file or Path("the scenario"), mistake) from None
    Player(node).play(scenario)
    return findings_of(node)


def _draw(found: Findings, path: Path) -> None:
    draw = picture_html if path.suffix == ".html" else picture_svg
    try:
        path.write_text(draw(found), encoding="utf-8")
    except OSError as error:
        raise NoPicture(path, (error.strerror or str(error)).lower()) from None


def show_findings(
    found: Findings, output: str, left_out: Sequence[LeftOut] = ()
) -> str:
    """Format findings, and what was left out of the workload, as tables or as JSON."""
    if output == "json":
        document = {**_findings_document(found), "left_out": to_plain(left_out)}
        return printable_json(json.dumps(document, indent=2))
    return "\n\n".join((*_sections(found), *_left_out(left_out)))


def show_changes(
    first: Findings, second: Findings, output: str, left_out: Sequence[LeftOut] = ()
) -> tuple[str, bool]:
    """Format the differences; return also whether there are any."""
    changes = changes_between(first, second)
    if output == "json":
        plain, left = to_plain(changes), to_plain(left_out)
        document = {"format": FORMAT, "changes": plain, "left_out": left}
        return printable_json(json.dumps(document, indent=2)), bool(changes)
    rows = ((one.title, one.what, one.before, one.after) for one in changes)
    table = format_changes(_CHANGES, rows, REFUSED) if changes else "no difference"
    return "\n\n".join((table, *_left_out(left_out))), bool(changes)


def _findings_document(found: Findings) -> JsonObject:
    """Return findings as dictionaries, lists, texts and numbers.

    CPUs and nodes are in the kernel's list format, CPU amounts in thousandths, memory
    in bytes; ``largest`` is the most whole CPUs for one more container.
    """
    return {
        "format": FORMAT,
        "kind": found.kind,
        "containers": [to_plain(one) for one in found.placements],
        "refusals": [to_plain(one) for one in found.refusals],
        # `to_plain` leaves empty labels out; scripts expect the key.
        "pools": [
            {**to_plain(one), "labels": dict(one.labels), "largest": _largest_of(one)}
            for one in found.pools
        ],
        "largest": to_plain(found.largest),
        "stranded": str(found.stranded),
        "spread": {
            "exclusive": to_plain(found.spread),
            "shared": to_plain(found.shared_spread),
        },
    }


def _largest_of(pool: PoolUse) -> int:
    """Return the most whole CPUs that a pool could grant to one more container."""
    grantable = pool.shared | pool.isolated
    return min(pool.free // 1000, len(pool.cpus)) if grantable else 0


def _sections(found: Findings) -> Iterator[str]:
    yield f"{found.kind} on {len(found.machine.online)} CPUs"
    if found.placements:
        yield format_table(_PLACEMENTS, map(_placement, found.placements))
    if found.refusals:
        refused = (f"  {_sentence(one)}" for one in found.refusals)
        yield "\n".join(("refused", *refused))
    if found.pools:  # else no amounts are accounted for
        yield format_table(_POOLS, (_pool(one) for one in found.pools))
        yield "\n".join(_headroom(found))
    if scattered := tuple(_scattered(found)):
        yield "\n".join(scattered)


def _left_out(objects: Sequence[LeftOut]) -> Iterator[str]:
    if objects:
        rows = (printable(f"  {one}: {one.why}") for one in objects)
        yield "\n".join(("left out", *rows))


def _placement(one: PlacedContainer) -> Sequence[str]:
    return (
        one.title,
        one.qos.value,
        format_cpus(one.request),
        size_text(one.memory or None),
        str(one.cpus) or "any",
        str(one.exclusive) or "-",
        str(one.mems) or "any",
        one.pool,
        one.rule,
    )


def _sentence(one: RefusedRequest) -> str:
    about = "" if one.why.startswith(one.title) else f"{one.title}: "
    return printable(f"{about}{one.why}")


def _pool(one: PoolUse) -> Sequence[str]:
    memory = "-"
    if one.memory:
        granted, whole = size_text(one.memory_granted), size_text(one.memory)
        memory = f"{granted} of {whole}"
    return (
        one.name,
        one.kind,
        str(one.cpus),
        f"{format_cpus(one.granted)} of {format_cpus(one.capacity)}",
        format_cpus(one.free),
        str(_largest_of(one)),
        memory,
    )


def _headroom(found: Findings) -> Iterator[str]:
    largest = found.largest
    yield (
        f"one more container could be granted {largest.anywhere} whole CPUs; "
        f"in one socket {largest.in_socket}, in one NUMA node {largest.in_node}, "
        f"behind one L3 cache {largest.in_l3}"
    )
    if found.stranded:
        yield f"free CPUs that share a core with an exclusive CPU: {found.stranded}"


def _scattered(found: Findings) -> Iterator[str]:
    parts = {"sockets": "sockets", "nodes": "NUMA nodes", "l3": "L3 caches"}
    for kind, spread in (("exclusive", found.spread), ("shared", found.shared_spread)):
        for key, part in parts.items():
            if titles := getattr(spread, key):
                names = printable(", ".join(titles[:_MOST_NAMES]))
                more = len(titles) - _MOST_NAMES
                rest = f" and {more} more" if more > 0 else ""
                yield f"{kind} CPUs in several {part}: {len(titles)} ({names}{rest})"
