"""``nri-resmgr check``: validate configurations and show their pools."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.app.policies.build import host_warnings, policy_for
from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.chosen_machine import named_machine, this_machine
from nri_resmgr.cli.flags import Flags, add_host_flags, add_output
from nri_resmgr.cli.tables import format_table
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.mistakes import check_document
from nri_resmgr.host.text_file import UnreadableFile, read_text_file
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError

_BAD_INPUT: Final = 2  # the exit status
_STANDARD_INPUT: Final = Path("-")

_EXAMPLES: Final = """\
examples:
  nri-resmgr check my.yaml                         against this machine
  nri-resmgr check --topology 2s2n8c2t my.yaml     against a synthetic one
  nri-resmgr check --topology node7.tgz my.yaml    against a dump of another one
  kubectl get topologyawarepolicy default -o yaml | nri-resmgr check -

A file is one document, as for `run`. Each mistake is one line: file, path, sentence.

exit status: 0 all are valid; 1 the machine cannot be read; 2 there are mistakes
"""

_INEFFECTIVE: Final = "has no effect here"
_MORE: Final = "fixing these may reveal more mistakes"


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = (
        "Check configurations as the daemon would, for this machine or another one, "
        "and show their pools or balloons."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a document; - is standard input",
    )
    parser.add_argument(
        "--topology",
        metavar="SPEC|DUMP",
        help="a synthetic machine such as 2s2n4c2t, or a file of `topology dump`; "
        "default is this machine",
    )
    add_host_flags(Flags(parser, environment))
    add_output(parser, "table", "json")


def run(options: argparse.Namespace) -> int:
    """Check each file and print the results.

    Raises:
        ResmgrError: The machine cannot be read.
    """
    if options.topology:
        checker = Checker(named_machine(options.topology))
    else:
        checker = Checker(this_machine(options), HostTree(options.host_root))
    found = [checker.check(*_read(path)) for path in options.files]
    print((show_as_json if options.output == "json" else show_as_text)(found))
    return 0 if all(one.is_valid for one in found) else _BAD_INPUT


class CheckResult(msgspec.Struct, frozen=True):
    """A document, checked for one machine.

    Attributes:
        file: Name of its file.
        config: The configuration; None if it has mistakes.
        mistakes: A sentence each, with its path or line.
        is_complete: Whether `mistakes` has all of them.
        host_warnings: Path and sentence of options that the machine supports only in
            part.
        pools: The pools of the policy on the machine.
    """

    file: str
    config: PolicyConfig | None
    mistakes: tuple[str, ...] = ()
    is_complete: bool = True
    host_warnings: tuple[tuple[str, str], ...] = ()
    pools: tuple[PoolUse, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the daemon would accept it."""
        return not self.mistakes

    @property
    def warnings(self) -> tuple[tuple[str, str], ...]:
        """Path and sentence of options that are valid and probably not intended."""
        if self.config is None:
            return ()
        unused = ((path, _INEFFECTIVE) for path in self.config.ineffective)
        return (*unused, *self.config.warnings, *self.host_warnings)


class Checker:
    """Checks documents as the daemon would.

    Args:
        machine: The machine that they have to fit.
        tree: The files of the host, if it is that machine.
    """

    def __init__(self, machine: Machine, tree: Tree | None = None) -> None:
        self._machine = machine
        self._tree = tree

    def check(self, file: str, text: str | UnreadableFile) -> CheckResult:
        """Check the text of a file; an unreadable file is a mistake."""
        if isinstance(text, InputError):
            return CheckResult(file, None, (str(text),))
        found = check_document(text, self._fits)
        if found.config is None:
            mistakes = tuple(str(mistake) for mistake in found.mistakes)
            return CheckResult(file, None, mistakes, found.is_complete)
        policy = self._policy(found.config)
        pools = policy.pools(policy.start())
        warnings = self._warnings(found.config)
        return CheckResult(file, found.config, host_warnings=warnings, pools=pools)

    def _fits(self, config: PolicyConfig) -> None:
        # Both raise for mistakes that only show on a machine.
        self._policy(config)
        self._warnings(config)

    def _warnings(self, config: PolicyConfig) -> tuple[tuple[str, str], ...]:
        return host_warnings(config, self._machine, self._tree)

    def _policy(self, config: PolicyConfig) -> ViewedPolicy[KnowsContainers]:
        return policy_for(config, self._machine, self._tree)


def show_as_text(found: Sequence[CheckResult]) -> str:
    """Format mistakes and warnings one per line, then pools as tables."""
    lines = [line for one in found for line in _mistakes_and_warnings(one)]
    tables = [_table(one) for one in found if one.config]
    return "\n\n".join(["\n".join(lines), *tables] if lines else tables)


def show_as_json(found: Sequence[CheckResult]) -> str:
    """Format the results as JSON."""
    return json.dumps({"documents": [_as_data(one) for one in found]}, indent=2)


def _mistakes_and_warnings(one: CheckResult) -> Iterator[str]:
    for mistake in one.mistakes:
        yield mistake if one.file in mistake else f"{one.file}: {mistake}"
    if one.mistakes and not one.is_complete:
        yield f"{one.file}: {_MORE}"
    for path, why in one.warnings:
        yield f"{one.file}: warning: {path}: {why}"


def _table(one: CheckResult) -> str:
    kind = one.config.kind if one.config else ""
    header = ("pool", "kind", "CPUs", "reserved", "nodes", "memory")
    rows = [*map(_row, _in_order(one.pools)), *_types_without_balloon(one)]
    return f"{one.file}: {kind}\n{format_table(header, rows)}"


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
        "valid": one.is_valid,
        "kind": one.config.kind if one.config else None,
        "mistakes": list(one.mistakes),
        "complete": one.is_complete,
        "warnings": [{"path": path, "why": why} for path, why in one.warnings],
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


def _read(path: Path) -> tuple[str, str | UnreadableFile]:
    """Return a file's name, and its text or why it cannot be read."""
    if path == _STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read().decode(
            "utf-8", "surrogateescape"
        )
    try:
        return str(path), read_text_file(path)
    except UnreadableFile as error:
        return str(path), error
