"""Classes and settings of the host as sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.look import PLAIN, Look
from nri_resmgr.cli.tables import format_table
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

_OF_FILES: Final = {
    "failing": "failing",
    "drifting": "changed by other programs",
    "abandoned": "abandoned",
}
_OF_INTERRUPTS: Final = {
    "unplaced": "not placed",
    "refused": "refused by the kernel",
}

_RDT: Final = ("RDT class", "wanted", "found", "threads", "containers")
_BLOCKIO: Final = ("block I/O class", "files", "problems", "containers")
_TOP_TIER: Final = ("limit of fast memory", "size", "state")
_MEMORY: Final = ("memory class", "kind", "settings", "containers")


def class_lines(found: JsonObject) -> Iterator[tuple[str, str]]:
    """Describe each kind of class in sentences, each with a title."""
    for kind, title in (("rdt", "RDT"), ("blockio", "block I/O")):
        if (one := found[kind]) is None:
            continue
        counts = [count_text(len(one["classes"]), "class", "classes")]
        if one["dropped"]:
            containers = count_text(one["dropped"], "container")
            counts.append(f"{containers} created without a class")
        yield title, ", ".join(counts)
        if problem := one.get("problem"):
            yield "", f"not as configured: {problem}"
        for failing in one["failing"]:
            # A problem of the whole kind is shown once.
            if failing["why"] != one.get("problem"):
                yield "", f"{failing['what']}: {failing['why']}"


def class_tables(found: JsonObject, look: Look = PLAIN) -> Iterator[str]:
    """Format a table for each kind that has classes."""
    rdt, blockio = found["rdt"], found["blockio"]
    if rdt and rdt["classes"]:
        yield format_table(_RDT, [_rdt_row(one) for one in rdt["classes"]], look)
    if blockio and blockio["classes"]:
        rows = [_blockio_row(one) for one in blockio["classes"]]
        yield format_table(_BLOCKIO, rows, look)
    if (memory := found["memory"]) and memory["classes"]:
        rows = [_memory_row(one) for one in memory["classes"]]
        yield format_table(_MEMORY, rows, look)
    if limits := found["topTier"]:
        yield format_table(_TOP_TIER, [_limit_row(one) for one in limits], look)


def _rdt_row(one: JsonObject) -> tuple[str, ...]:
    wanted = " ".join(one["wanted"]) or ("-" if one["managed"] else "foreign group")
    found = " ".join(one["found"]) or "-"
    return (one["name"], wanted, found, str(one["threads"]), _count(one))


def _blockio_row(one: JsonObject) -> tuple[str, ...]:
    files = "; ".join(
        f"{file} {line}" for file, lines in one["files"].items() for line in lines
    )
    return (one["name"], files or "-", "; ".join(one["notices"]) or "-", _count(one))


def _memory_row(one: JsonObject) -> tuple[str, ...]:
    return (one["name"], one["kind"], one["settings"], _count(one))


def _limit_row(one: JsonObject) -> tuple[str, ...]:
    state = "written" if one["written"] else "not written yet"
    if one["why"]:
        state = f"not in force: {one['why']}"
    return (one["container"], size_text(one["limit"]), state)


def _count(one: JsonObject) -> str:
    return str(len(one["containers"]))


def host_lines(found: JsonObject) -> Iterator[str]:
    """Describe the settings of the host in sentences."""
    if not found["applied"]:
        yield f"not applied: {found['problem']}"
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


def cpu_class_table(found: JsonObject, look: Look = PLAIN) -> str:
    """Format CPU classes with the settings of their CPUs, wanted and found."""
    header = ("CPU class", "CPUs", "containers", "setting", "wanted", "found")
    rows = [row for one in found["classes"] for row in _rows_of(one)]
    return format_table(header, rows, look)


def isolation_table(found: JsonObject, look: Look = PLAIN) -> str:
    """Format the isolation of containers, with the CPUs that it is about."""
    header = ("isolated container", "exclusive", "what", "setting", "CPUs", "problem")
    rows = []
    for one in found["isolated"]:
        head = (one["container"], one["cpus"])
        for each in one["isolations"]:
            cpus, problem = each["cpus"] or "-", each["problem"] or "-"
            rows.append((*head, each["what"], each["setting"], cpus, problem))
            head = ("", "")
    return format_table(header, rows, look)


def _rows_of(one: JsonObject) -> Iterator[tuple[str, ...]]:
    head = (one["name"], one["cpus"], str(len(one["containers"])))
    for setting in one["settings"]:
        values = (" ".join(setting[key]) for key in ("wanted", "found"))
        yield (*head, setting["what"], *(value or "-" for value in values))
        head = ("", "", "")
    if not one["settings"]:
        yield (*head, "-", "-", "-")


def _counts(found: JsonObject) -> Iterator[str]:
    files, interrupts = found["files"], found["interrupts"]
    yield f"{count_text(files['wanted'], 'file')} set"
    for key, what in _OF_FILES.items():
        if count := len(files[key]):
            yield f"{count} {what}"
    if count := len(interrupts["placed"]):
        yield f"{count_text(count, 'interrupt')} placed"
    for key, what in _OF_INTERRUPTS.items():
        if count := len(interrupts[key]):
            yield f"{count} {what}"


def _more(found: list[JsonObject]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""
