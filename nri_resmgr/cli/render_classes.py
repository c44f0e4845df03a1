"""RDT, block I/O and memory classes as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nri_resmgr.cli.tables import format_table

Data = Mapping[str, Any]

_RDT: Final = ("RDT class", "wanted", "found", "threads", "containers")
_BLOCKIO: Final = ("block I/O class", "files", "lacks", "containers")
_MEMORY: Final = ("memory class", "kind", "means", "containers")


def class_lines(found: Data) -> Iterator[tuple[str, str]]:
    """Say in sentences how it goes with each kind of class, by its name."""
    for kind, title in (("rdt", "RDT"), ("blockio", "block I/O")):
        if (one := found[kind]) is None:
            continue
        counts = [_many(len(one["classes"]), "class", "classes")]
        if one["dropped"]:
            who = _many(one["dropped"], "container", "containers")
            counts.append(f"{who} went without theirs")
        yield title, ", ".join(counts)
        if why := one.get("whyNot"):
            yield "", f"not as configured: {why}"
        for failing in one["failing"]:
            if failing["why"] != one.get("whyNot"):
                yield "", f"{failing['what']}: {failing['why']}"


def class_tables(found: Data) -> Iterator[str]:
    """Write a table for each kind that has classes."""
    rdt, blockio = found["rdt"], found["blockio"]
    if rdt and rdt["classes"]:
        yield format_table(_RDT, [_rdt_row(one) for one in rdt["classes"]])
    if blockio and blockio["classes"]:
        yield format_table(_BLOCKIO, [_blockio_row(one) for one in blockio["classes"]])
    if (memory := found["memory"]) and memory["classes"]:
        yield format_table(_MEMORY, [_memory_row(one) for one in memory["classes"]])


def _rdt_row(one: Data) -> tuple[str, ...]:
    wanted = " ".join(one["wanted"]) or ("-" if one["ours"] else "others' group")
    found = " ".join(one["found"]) or "-"
    return (one["name"], wanted, found, str(one["threads"]), _count(one))


def _blockio_row(one: Data) -> tuple[str, ...]:
    files = "; ".join(
        f"{file} {line}" for file, lines in one["files"].items() for line in lines
    )
    return (one["name"], files or "-", "; ".join(one["notices"]) or "-", _count(one))


def _memory_row(one: Data) -> tuple[str, ...]:
    return (one["name"], one["kind"], one["means"], _count(one))


def _count(one: Data) -> str:
    return str(len(one["containers"]))


def _many(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
