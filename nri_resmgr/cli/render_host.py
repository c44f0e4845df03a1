"""CPU classes, interrupts and what else is set of a host, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nri_resmgr.cli.tables import format_table

Data = Mapping[str, Any]


def host_lines(found: Data) -> Iterator[str]:
    """Say in sentences how it goes with the host's own settings."""
    if not found["followed"]:
        yield f"left as it is: {found['whyNot']}"
    if files := found["files"]:
        yield ", ".join(_counts(found))
        for one in files["failing"][:1]:
            more = _more(files["failing"])
            yield f"cannot write {one['value']!r} to {one['path']}: {one['why']}{more}"
        for one in files["drifting"][:1]:
            more = _more(files["drifting"])
            what = f"has {one['found']!r} instead of {one['wanted']!r}{more}"
            yield f"{one['path']} {what}"
    for one in found["speedSelect"]:
        yield f"punit {one['punit']}: {one['wanted']}"


def class_table(found: Data) -> str:
    """Write CPU classes with what is set of their CPUs, wanted and found."""
    header = ("CPU class", "CPUs", "containers", "setting", "wanted", "found")
    return format_table(
        header, [row for one in found["classes"] for row in _rows_of(one)]
    )


def isolation_table(found: Data) -> str:
    """Write what is isolated of containers, with the CPUs that it is about."""
    header = ("isolated container", "own CPUs", "what", "setting", "for CPUs", "lacks")
    rows = []
    for one in found["isolated"]:
        head = (one["container"], one["cpus"])
        for each in one["isolations"]:
            cpus, lacks = each["cpus"] or "-", each["whyNot"] or "-"
            rows.append((*head, each["what"], each["setting"], cpus, lacks))
            head = ("", "")
    return format_table(header, rows)


def _rows_of(one: Data) -> Iterator[tuple[str, ...]]:
    head = (one["name"], one["cpus"], str(len(one["containers"])))
    for setting in one["settings"]:
        values = (" ".join(setting[key]) for key in ("wanted", "found"))
        yield (*head, setting["what"], *(value or "-" for value in values))
        head = ("", "", "")
    if not one["settings"]:
        yield (*head, "-", "-", "-")


def _counts(found: Data) -> Iterator[str]:
    files, interrupts = found["files"], found["interrupts"]
    yield f"{files['wanted']} files set"
    counts = {
        "failing": len(files["failing"]),
        "changed by others": len(files["drifting"]),
        "given up": len(files["abandoned"]),
        "interrupts placed": len(interrupts["placed"]),
        "not placed": len(interrupts["unplaced"]),
        "refused by the kernel": len(interrupts["refused"]),
    }
    yield from (f"{count} {what}" for what, count in counts.items() if count)


def _more(found: list[Data]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""
