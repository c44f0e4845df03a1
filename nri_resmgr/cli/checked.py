"""What `check` finds in a document, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from nri_resmgr.app.policies.build import host_warnings, policy_for
from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.mistakes import check_document
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError

_INEFFECTIVE: Final = "has no effect here"
_MORE: Final = "there may be more mistakes, which show once these are mended"


class Checked(msgspec.Struct, frozen=True):
    """One document, judged for one machine.

    Attributes:
        file: Its name.
        config: What it says; None where it is wrong.
        mistakes: A sentence each, with its path or line.
        is_all: Whether there are no more mistakes.
        on_host: Path and sentence of what the machine can do only in part.
        pools: What the policy would make of the machine.
    """

    file: str
    config: PolicyConfig | None
    mistakes: tuple[str, ...] = ()
    is_all: bool = True
    on_host: tuple[tuple[str, str], ...] = ()
    pools: tuple[PoolUse, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the daemon would take it."""
        return not self.mistakes

    @property
    def warnings(self) -> tuple[tuple[str, str], ...]:
        """Path and sentence of what is right and hardly meant."""
        if self.config is None:
            return ()
        idle = ((path, _INEFFECTIVE) for path in self.config.ineffective)
        return (*idle, *self.config.warnings, *self.on_host)


class Checker:
    """Judges documents.

    Args:
        machine: What they are to fit.
        tree: The host, where that is the machine.
    """

    def __init__(self, machine: Machine, tree: Tree | None = None) -> None:
        self._machine = machine
        self._tree = tree

    def check(self, file: str, text: str | UnreadableFile) -> Checked:
        """Judge the text of a file, or tell why there is none."""
        if isinstance(text, InputError):
            return Checked(file, None, (str(text),))
        found = check_document(text, self._fits)
        if found.config is None:
            mistakes = tuple(str(mistake) for mistake in found.mistakes)
            return Checked(file, None, mistakes, found.is_complete)
        policy = self._policy(found.config)
        pools = policy.pools(policy.start())
        on_host = self._warnings(found.config)
        return Checked(file, found.config, on_host=on_host, pools=pools)

    def _fits(self, config: PolicyConfig) -> None:
        self._policy(config)
        self._warnings(config)

    def _warnings(self, config: PolicyConfig) -> tuple[tuple[str, str], ...]:
        return host_warnings(config, self._machine, self._tree)

    def _policy(self, config: PolicyConfig) -> Any:
        return policy_for(config, self._machine, self._tree)


def show_as_text(found: Sequence[Checked]) -> str:
    """Write mistakes and warnings one to a line, then what is right as tables."""
    lines = [line for one in found for line in _remarks(one)]
    tables = [_table(one) for one in found if one.config]
    return "\n\n".join(["\n".join(lines), *tables] if lines else tables)


def show_as_json(found: Sequence[Checked]) -> str:
    """Write everything for programs."""
    return json.dumps({"documents": [_as_data(one) for one in found]}, indent=2)


def _remarks(one: Checked) -> Iterator[str]:
    for mistake in one.mistakes:
        yield mistake if one.file in mistake else f"{one.file}: {mistake}"
    if one.mistakes and not one.is_all:
        yield f"{one.file}: {_MORE}"
    for path, why in one.warnings:
        yield f"{one.file}: warning: {path}: {why}"


def _table(one: Checked) -> str:
    kind = one.config.kind if one.config else ""
    header = ("pool", "kind", "CPUs", "reserved", "nodes", "memory")
    rows = [*map(_row, _in_order(one.pools)), *_types_without_balloon(one)]
    return f"{one.file}: {kind}\n{format_table(header, rows)}"


def _in_order(pools: Iterable[PoolUse], within: str = "") -> Iterator[PoolUse]:
    """Put pools below what they are a part of."""
    pools = tuple(pools)
    parts = [one for one in pools if one.within == within]
    for one in sorted(parts, key=lambda one: one.cpus.first if one.cpus else -1):
        yield one
        yield from _in_order(pools, one.name)


def _row(pool: PoolUse) -> tuple[str, ...]:
    cells = (str(pool.cpus), str(pool.reserved), str(pool.mems))
    memory = size_text(pool.memory or None)
    return (pool.name, pool.kind, *(cell or "-" for cell in cells), memory)


def _types_without_balloon(one: Checked) -> Iterator[tuple[str, ...]]:
    present = {pool.labels.get("type") for pool in one.pools}
    for name in one.config.listed_types if one.config else ():
        if name not in present:
            yield (name, "balloon type", "-", "-", "-", "-")


def _as_data(one: Checked) -> Mapping[str, object]:
    return {
        "file": one.file,
        "right": one.is_right,
        "kind": one.config.kind if one.config else None,
        "mistakes": list(one.mistakes),
        "all": one.is_all,
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
