"""The parser of the short text that describes a synthetic machine."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from nri_resmgr.topology.memory import HugePages, MemoryKind
from nri_resmgr.values import (
    NO_CPUS,
    NO_NODES,
    Bytes,
    CpuSet,
    InputError,
    NodeSet,
    parse_bytes,
)

_Parsed = TypeVar("_Parsed")

_MEMORY: Final = Bytes(16 << 30)
_MAX_CPUS: Final = 8192  # largest CONFIG_NR_CPUS on x86
_MAX_NODES: Final = 1024
_SHAPE: Final = re.compile(r"(?:\d{1,4}[sdncte])+", re.ASCII)
_COUNT: Final = re.compile(r"(\d{1,4})([sdncte])", re.ASCII)
_EXTRA_NODES: Final = re.compile(r"(?:(\d{1,3})x)?([^:]+?)(:movable)?", re.ASCII)


@dataclass(eq=False)
class BadMachineSpec(InputError):
    """The text that describes a synthetic machine is invalid."""

    word: str
    why: str

    def __str__(self) -> str:
        return f"bad machine spec at {self.word!r}: {self.why}"


class Numbering(enum.StrEnum):
    """The numbering of CPUs: all first threads before second ones, or core by core."""

    SPLIT = "split"
    ADJACENT = "adjacent"


class MemoryNodes(msgspec.Struct, frozen=True):
    """Nodes of one kind of memory without CPUs, spread over the nodes with CPUs."""

    kind: MemoryKind
    count: int
    memory: Bytes
    movable: bool


class MachineSpec(msgspec.Struct, frozen=True):
    """A synthetic machine in numbers; see `parse_words` for the text."""

    sockets: int = 1
    dies: int = 1
    nodes: int = 1
    cores: int = 1
    threads: int = 1
    efficient: int = 0
    l3: tuple[int, ...] = ()
    cluster: int = 0
    around: int = 1
    emulated: int = 1
    memory: tuple[Bytes, ...] = (_MEMORY,)
    extra: tuple[MemoryNodes, ...] = ()
    hugepages: tuple[HugePages, ...] = ()
    ids: NodeSet = NO_NODES
    numbering: Numbering | None = None
    distances: tuple[tuple[int, ...], ...] = ()
    offline: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS

    @property
    def cpu_nodes(self) -> int:
        """The number of nodes with CPUs, before they are split."""
        return self.sockets * self.dies * self.nodes // self.around


def parse_words(text: str) -> MachineSpec:
    """Read the words of a spec; `parse_spec` documents them.

    Raises:
        BadMachineSpec: A word is unknown, repeated or has a bad value.
    """
    shape, *words = text.split() or [""]
    fields: dict[str, Any] = dict(_shape(shape))
    extra: list[MemoryNodes] = []
    for word in words:
        key, _, value = word.partition("=")
        if key in _KINDS:
            extra.append(_read(word, partial(_memory_nodes, key), value))
        elif key not in _FIELDS or key in fields:
            raise BadMachineSpec(word, "unknown or repeated")
        else:
            fields[key] = _read(word, _FIELDS[key], value)
    spec = MachineSpec(**fields, extra=tuple(extra))
    if spec.sockets % spec.around or (spec.around > 1 and spec.dies * spec.nodes > 1):
        why = "want a divisor of the number of sockets, and one node in each"
        raise BadMachineSpec(f"around={spec.around}", why)
    nodes = spec.cpu_nodes * spec.emulated + sum(one.count for one in extra)
    if nodes > _MAX_NODES:  # the matrix of distances grows by the square
        raise BadMachineSpec(shape, f"{nodes} memory nodes, want at most {_MAX_NODES}")
    return spec


def _shape(text: str) -> Mapping[str, int]:
    if not _SHAPE.fullmatch(text):
        raise BadMachineSpec(text, "want a shape such as 2s2d2n4c2t")
    counts: dict[str, Any] = {}
    for count, letter in _COUNT.findall(text):
        name = _LETTERS[letter]
        if name in counts or (int(count) < 1 and letter not in "ce"):
            raise BadMachineSpec(text, f"{count}{letter} repeated or zero")
        counts[name] = int(count)
    spec = MachineSpec(**counts)
    each = spec.cores * spec.threads + spec.efficient
    cpus = spec.sockets * spec.dies * spec.nodes * each
    if not 1 <= cpus <= _MAX_CPUS:
        raise BadMachineSpec(text, f"{cpus} CPUs, want 1 to {_MAX_CPUS}")
    return counts


def _read(word: str, parse: Callable[[str], _Parsed], value: str) -> _Parsed:
    try:
        return parse(value)
    except (InputError, ValueError) as error:
        raise BadMachineSpec(word, str(error)) from error


def _memory_nodes(kind: str, value: str) -> MemoryNodes:
    match = _EXTRA_NODES.fullmatch(value)
    if match is None:
        raise ValueError("want [COUNTx]SIZE[:movable]")
    count, size, movable = match.groups()
    return MemoryNodes(
        MemoryKind(kind), int(count or 1), parse_bytes(size), movable is not None
    )


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise ValueError("want 1 or more")
    return number


def _counts(value: str) -> tuple[int, ...]:
    return tuple(map(_positive, value.split(",")))


def _sizes(value: str) -> tuple[Bytes, ...]:
    return tuple(map(parse_bytes, value.split(",")))


def _hugepages(value: str) -> tuple[HugePages, ...]:
    pools = (pool.partition(":") for pool in value.split(","))
    counts = {parse_bytes(size): int(count) for size, _, count in pools}
    return tuple(HugePages(size, counts[size]) for size in sorted(counts))


def _rows(value: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row.split(","))) for row in value.split(";"))


_KINDS: Final = frozenset(MemoryKind)
_LETTERS: Final = {
    "s": "sockets",
    "d": "dies",
    "n": "nodes",
    "c": "cores",
    "t": "threads",
    "e": "efficient",
}
_FIELDS: Final[Mapping[str, Callable[[str], object]]] = {
    "l3": _counts,
    "cluster": _positive,
    "around": _positive,
    "emulated": _positive,
    "memory": _sizes,
    "hugepages": _hugepages,
    "ids": NodeSet.parse,
    "numbering": Numbering,
    "distances": _rows,
    "offline": CpuSet.parse,
    "isolated": CpuSet.parse,
}
