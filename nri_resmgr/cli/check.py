"""``nri-resmgr check``: validate configurations and show their pools."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from nri_resmgr.app.configuration.build import host_warnings
from nri_resmgr.app.configuration.fitting import fitted, left_out
from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.chosen_machine import named_machine, this_machine
from nri_resmgr.cli.documents import add_files, name_of, read_document
from nri_resmgr.cli.flags import Parser, add_host_flags
from nri_resmgr.cli.output import (
    add_output,
    is_document,
    own_document,
    print_document,
)
from nri_resmgr.cli.tables import format_table
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.errors import (
    MAX_PATH,
    MAX_SENTENCE,
    BadSetting,
    BadSyntax,
)
from nri_resmgr.config.mistakes import check_document
from nri_resmgr.config.positions import Position, Positions
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.kubelet.sockets import (
    DEFAULT_KUBELET_DIR,
    WhyNoDevices,
    kubelet_dir,
    why_no_devices,
)
from nri_resmgr.policies import find_kind, read_config
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.values.printable import printable
from nri_resmgr.values.shorten import shortened

_BAD_INPUT: Final = 2  # the exit status

_EXAMPLES: Final = """\
examples:
  nri-resmgr check my.yaml                         against this machine
  nri-resmgr check --topology 2s2n8c2t my.yaml     against a synthetic one
  nri-resmgr check --topology node7.tgz my.yaml    against a dump of another one
  kubectl get topologyawarepolicy default -o yaml | nri-resmgr check -

A file is one document, as for `run`. Each mistake is one line: file, line and column,
path, sentence.

exit status: 0 all are valid; 1 the machine cannot be read; 2 there are mistakes
"""

_INEFFECTIVE: Final = "has no effect here"
_MORE: Final = "fixing these may reveal more mistakes"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Check configurations as the daemon would, for this machine or another one, "
        "and show their pools or balloons."
    )
    parser.epilog = _EXAMPLES
    add_files(parser, "a document")
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a synthetic machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is this machine",
    )
    add_host_flags(parser)
    parser.add_flag(
        "--kubelet-dir",
        default=DEFAULT_KUBELET_DIR,
        metavar="PATH",
        help="root directory of this machine's kubelet, whose socket "
        f"pod-resources/kubelet.sock `podresourceapi:` needs ({DEFAULT_KUBELET_DIR})",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Check each file and print the results."""
    tree: Tree | None = None
    no_devices: WhyNoDevices = str
    if options.topology:
        machine = named_machine(options.topology)
    else:
        machine, tree = this_machine(options), HostTree(options.host_root)
        kubelet = kubelet_dir(options.kubelet_dir)
        no_devices = partial(why_no_devices, kubelet)
    texts = map(_read, options.files)
    found = [check(file, text, machine, tree, no_devices) for file, text in texts]
    if is_document(options.output):
        documents = [_as_data(one) for one in found]
        results = own_document("CheckResults", {"documents": documents})
        print_document(results, options.output)
    else:
        print(show_as_text(found))
    return _BAD_INPUT if any(one.mistakes for one in found) else 0


class Remark(msgspec.Struct, frozen=True):
    """A mistake or a warning.

    Attributes:
        path: Its place in the document; empty for a text that is not one.
        position: Its place in the text, as far as it is known.
    """

    path: str
    why: str
    position: Position = Position()

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


class CheckResult(msgspec.Struct, frozen=True):
    """A document, checked for one machine.

    Attributes:
        config: The configuration; None if it has mistakes.
        is_complete: Whether `mistakes` has all of them.
        is_read: Whether the file could be read; else the mistake names it.
        warnings: Options that are valid and probably not intended, and those that the
            machine supports only in part.
    """

    file: str
    config: PolicyConfig | None
    mistakes: tuple[Remark, ...] = ()
    is_complete: bool = True
    is_read: bool = True
    warnings: tuple[Remark, ...] = ()
    pools: tuple[PoolUse, ...] = ()


def check(
    file: str,
    text: str | UnreadableFile,
    machine: Machine,
    tree: Tree | None = None,
    no_devices: WhyNoDevices = str,
) -> CheckResult:
    """Check the text of a file as the daemon would; an unreadable file is a mistake.

    *tree* has the files of the host, if *machine* is that of the host. *no_devices*
    returns why its kubelet reports no devices of containers.
    """

    def build(config: PolicyConfig) -> ViewedPolicy[Any]:
        fits_here = fitted(config, machine)
        return find_kind(config.kind).build(fits_here, machine, tree)

    def fits(config: PolicyConfig) -> None:
        # Both raise for mistakes that only show on a machine.
        build(config)
        host_warnings(config, machine, tree, no_devices)

    if isinstance(text, UnreadableFile):
        return CheckResult(file, None, (Remark("", str(text)),), is_read=False)
    positions, found = Positions(text), check_document(text, read_config, fits)
    if found.config is None:
        mistakes = tuple(_mistake(one, positions.of(one)) for one in found.mistakes)
        return CheckResult(file, None, mistakes, found.is_complete)
    config = found.config
    policy = build(config)
    missing = ((one.path, one.why) for one in left_out(config, machine))
    found_there = host_warnings(config, machine, tree, no_devices)
    warnings = (*config.warnings, *missing, *found_there)
    unused = ((path, _INEFFECTIVE) for path in config.ineffective)
    return CheckResult(
        file,
        config,
        warnings=tuple(
            Remark(path, why, positions.at(path)) for path, why in (*unused, *warnings)
        ),
        pools=policy.pools(policy.start()),
    )


def _mistake(one: BadSyntax | BadSetting, position: Position) -> Remark:
    path = one.path if isinstance(one, BadSetting) else ""
    return Remark(shortened(path, MAX_PATH), shortened(one.why, MAX_SENTENCE), position)


def show_as_text(found: Sequence[CheckResult]) -> str:
    """Format mistakes and warnings one per line, then pools as tables."""
    lines = [printable(line) for one in found for line in _mistakes_and_warnings(one)]
    tables = [_table(one) for one in found if one.config]
    return "\n\n".join(["\n".join(lines), *tables] if lines else tables)


def _mistakes_and_warnings(one: CheckResult) -> Iterator[str]:
    for mistake in one.mistakes:
        where = f"{_place(one.file, mistake)}: " if one.is_read else ""
        yield f"{where}{mistake}"
    if one.mistakes and not one.is_complete:
        yield f"{one.file}: {_MORE}"
    for warning in one.warnings:
        yield f"{_place(one.file, warning)}: warning: {warning}"


def _place(file: str, found: Remark) -> str:
    """Return a place in the form from which editors jump to it."""
    at = found.position
    return f"{file}:{at.line}:{at.column}" if at.line else file


def _table(one: CheckResult) -> str:
    kind = one.config.kind if one.config else ""
    title = f"{printable(one.file)}: {kind}"
    header = ("pool", "kind", "CPUs", "reserved", "nodes", "memory")
    rows = [*map(_row, _in_order(one.pools)), *_types_without_balloon(one)]
    return f"{title}\n{format_table(header, rows) if rows else 'no pools'}"


def _in_order(pools: Iterable[PoolUse], within: str = "") -> Iterator[PoolUse]:
    """Yield each pool before its parts."""
    pools = tuple(pools)
    parts = [one for one in pools if one.within == within]
    for one in sorted(parts, key=lambda one: one.cpus.first if one.cpus else -1):
        yield one
        yield from _in_order(pools, one.name)


def _row(pool: PoolUse) -> tuple[str, ...]:
    cells = (str(pool.cpus), str(pool.reserved), str(pool.mems))
    memory = size_text(pool.memory or None)
    return (pool.name, pool.kind, *(cell or "-" for cell in cells), memory)


def _types_without_balloon(one: CheckResult) -> Iterator[tuple[str, ...]]:
    present = {pool.labels.get("type") for pool in one.pools}
    for name in one.config.listed_types if one.config else ():
        if name not in present:
            yield (name, "balloon type", "-", "-", "-", "-")


def _as_data(one: CheckResult) -> Mapping[str, object]:
    return {
        "file": one.file,
        "valid": not one.mistakes,
        "kind": one.config.kind if one.config else None,
        "mistakes": [_remark(found) for found in one.mistakes],
        "complete": one.is_complete,
        "warnings": [_remark(found) for found in one.warnings],
        "pools": [
            {
                "name": pool.name,
                "kind": pool.kind,
                "within": pool.within or None,
                "cpus": str(pool.cpus),
                "reserved": str(pool.reserved),
                "nodes": str(pool.mems),
                "memory": pool.memory,
            }
            for pool in _in_order(one.pools)
        ],
    }


def _remark(found: Remark) -> Mapping[str, object]:
    return {
        "path": found.path or None,
        "why": found.why,
        "line": found.position.line or None,
        "column": found.position.column or None,
    }


def _read(path: Path) -> tuple[str, str | UnreadableFile]:
    """Return a file's name, and its text or why it cannot be read."""
    try:
        return str(name_of(path)), read_document(path)
    except UnreadableFile as error:
        return str(name_of(path)), error
