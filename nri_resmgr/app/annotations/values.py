"""Readers of single values; their errors name what would be accepted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from nri_resmgr.app.annotations.documents import (
    read_document,
    read_mapping,
    read_text,
    read_texts,
)
from nri_resmgr.app.annotations.errors import SHOWN, NotAccepted
from nri_resmgr.classes.irq.requests import IrqAffinity
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.interrupts import read_irq_affinity
from nri_resmgr.config.table import Table
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.topology import MemoryKind
from nri_resmgr.topology.hint_options import (
    ALL_SOURCES,
    HintSource,
    PathMatch,
    PathRule,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import BadListFormat, CpuSet, NodeSet
from nri_resmgr.values.globs import check_glob
from nri_resmgr.values.shorten import shortened

WordT = TypeVar("WordT")

# The spellings of Go's strconv.ParseBool.
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))

# Those of YAML besides: nri-plugins does not read them, but no author of them can have
# meant anything else.
_TOLERATED: Final = {"yes": True, "no": False}

_PRIORITIES: Final[Mapping[str, CpuPriority | None]] = {
    **{priority.value: priority for priority in CpuPriority},
    "default": None,
}

# The tiers of nri-plugins: its "pmem" is all memory that is slower than DRAM and
# has no CPUs, whatever the technology.
_KINDS: Final[Mapping[str, frozenset[MemoryKind]]] = {
    "dram": frozenset((MemoryKind.DRAM,)),
    "pmem": frozenset((MemoryKind.PMEM, MemoryKind.CXL)),
    "hbm": frozenset((MemoryKind.HBM,)),
    "cxl": frozenset((MemoryKind.CXL,)),
    "mixed": frozenset(MemoryKind),
}

_NAME: Final = re.compile(r"\S{1,253}")

_DURATION: Final = re.compile(
    r"\+?(?:(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?:ns|us|µs|ms|s|m|h))+", re.ASCII
)
_DURATION_PART: Final = re.compile(r"([\d.]+)([a-zµ]+)", re.ASCII)
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}
_LONGEST: Final = 3600  # seconds; nri-plugins' limit


def read_flag(text: str) -> bool:
    """Read a boolean, in any of Go's spellings, or ``yes`` or ``no``."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if (found := _TOLERATED.get(text.lower())) is not None:
        return found
    raise NotAccepted(text, "true or false")


def read_exact_flag(text: str) -> bool:
    """Read a boolean that nri-plugins reads in one spelling only."""
    return read_flag(text)


def unusual_flag(read: Callable[[str], object], text: str) -> str:
    """Return what is unusual about the spelling of a boolean; empty if nothing is.

    *read* is the reader that accepted it.
    """
    is_exact = read is read_exact_flag
    if not (is_exact or read in (read_flag, read_sources)):
        return ""
    if text.lower() in _TOLERATED or (is_exact and text not in ("true", "false")):
        meant = "true" if read_flag(text) else "false"
        return f"{shortened(text, SHOWN)!r} is read as {meant}; write {meant}"
    return ""


def read_priority(text: str) -> CpuPriority | None:
    """Read a CPU priority; None for the configured default."""
    return _word(text, _PRIORITIES)


def read_level(text: str) -> TreeLevel:
    """Read a level of the pool tree."""
    return _word(text, {level.value: level for level in TreeLevel})


def read_kinds(text: str) -> frozenset[MemoryKind]:
    """Read kinds of memory, separated by commas."""
    words = [word.strip().lower() for word in text.split(",")]
    if unknown := [word for word in words if word not in _KINDS]:
        raise NotAccepted(unknown[0], f"a kind of memory: {_either(_KINDS)}")
    return frozenset[MemoryKind]().union(*(_KINDS[word] for word in words))


def read_name(text: str) -> str:
    """Read the name of a class; whether the class exists is checked later."""
    if not _NAME.fullmatch(text):
        raise NotAccepted(text, "the name of a class, without blanks")
    return text


def read_interrupts(text: str) -> IrqAffinity:
    """Read ``{claim: [...], mask: [...], mode: mask-first|claim-first}``."""
    return read_irq_affinity(read_document(text))


def read_cold_start(text: str) -> int:
    """Read ``duration: 60s``; returns seconds, rounded up."""
    return cold_start_of(read_document(text), "$")


def cold_start_of(found: object, path: str) -> int:
    """Read the duration in a mapping; returns seconds."""
    duration = Table.read(found, "duration", path=path).text("duration")
    if duration == "0":
        return 0
    if not _DURATION.fullmatch(duration):
        raise NotAccepted(duration, "a duration such as 90s or 1m30s")
    seconds = -(-_nanoseconds(duration) // _UNITS["s"])
    if seconds > _LONGEST:
        raise NotAccepted(duration, "a duration of 0s to 1h")
    return seconds


def _nanoseconds(duration: str) -> int:
    total = 0
    for number, unit in _DURATION_PART.findall(duration):
        whole, _, digits = number.partition(".")
        total += int(whole + digits or "0") * _UNITS[unit] // 10 ** len(digits)
    return total


def _word(text: str, words: Mapping[str, WordT]) -> WordT:
    if text not in words:
        raise NotAccepted(text, f"any of {_either(words)}")
    return words[text]


def _either(words: Sequence[str] | Mapping[str, object]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"


_NONE: Final = frozenset[HintSource]()
_SOURCES: Final = {source.value: frozenset((source,)) for source in HintSource} | {
    "all": ALL_SOURCES,
    "none": _NONE,
}


def read_sources(text: str) -> frozenset[HintSource]:
    """Read a boolean, or sources separated by commas."""
    words = [word.strip() for word in text.split(",")]
    if all(word in _SOURCES for word in words):
        return _NONE.union(*(_SOURCES[word] for word in words))
    try:
        return ALL_SOURCES if read_flag(text) else _NONE
    except NotAccepted:
        accepted = f"true, false, or a list of {', '.join(_SOURCES)}"
        raise NotAccepted(text, accepted) from None


def read_path_rule(text: str) -> PathRule:
    """Read ``{type: prefix|glob, paths: [...]}``."""
    table = Table.read(read_document(text), "type", "paths")
    kinds = tuple(PathMatch)
    for key, expected in (("type", " or ".join(kinds)), ("paths", "a list of paths")):
        if not table.rows.get(key):
            raise BadSetting(table.at(key), f"missing, expected {expected}")
    match = PathMatch(table.choice("type", kinds, ""))
    paths = read_texts(table.rows["paths"], table.at("paths"))
    if match is PathMatch.GLOB:
        for name in "/".join(paths).split("/"):
            check_glob(name)
    return PathRule(match, paths)


def read_hints(text: str) -> tuple[Hint, ...]:
    """Read hints that a test provides, in the form of nri-plugins' tests."""
    top = read_mapping(read_document(text), "$")
    return tuple(_hint(name, found) for name, found in top.items())


def _hint(name: str, found: object) -> Hint:
    table = Table.read(found, "Provider", "CPUs", "NUMAs", "Sockets", path=f"$.{name}")

    def text(key: str) -> str:
        return read_text(table.rows.get(key, ""), table.at(key))

    try:
        return Hint(
            text("Provider") or name,
            cpus=CpuSet.parse(text("CPUs")),
            nodes=NodeSet.parse(text("NUMAs")),
            packages=frozenset(NodeSet.parse(text("Sockets"))),
        )
    except BadListFormat as error:
        raise BadSetting(table.path, str(error)) from None
