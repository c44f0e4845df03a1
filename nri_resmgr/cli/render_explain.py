"""Why a container is where it is, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nri_resmgr.cli.amounts import cpus_text, size_text
from nri_resmgr.cli.render_events import event_line
from nri_resmgr.cli.render_status import in_force_text
from nri_resmgr.cli.tables import format_table

Data = Mapping[str, Any]


def render_explanation(explanation: Data) -> str:
    """Write what is known of each container, and what was refused."""
    parts = ["\n".join(_container(one)) for one in explanation["containers"]]
    if explanation["refusals"]:
        lines = (f"  {event_line(row)}" for row in explanation["refusals"])
        parts.append("\n".join(("refused of late", *lines)))
    return "\n\n".join(parts)


def _container(one: Data) -> Iterator[str]:
    yield one["title"] if one["here"] else f"{one['title']}, which is gone"
    if "container" in one:
        yield from _holdings(one["container"])
        yield from (f"  host   {sentence}" for sentence in one["host"])
    placement = one["placement"]
    if placement:
        yield f"why, decided at {placement['time']} by rule {placement['rule']}:"
        yield from (f"  - {sentence}" for sentence in placement["sentences"])
    else:
        yield "why: nothing is known of how it came there"
    if one.get("candidates"):
        yield "if it came now, best first:"
        yield from (f"  {line}" for line in _candidates(one).splitlines())
    if one["history"]:
        yield "what happened:"
        rows = [_chapter(chapter) for chapter in one["history"]]
        header = ("event", "time", "what", "CPUs", "nodes", "why")
        table = format_table(header, rows)
        yield from (f"  {line}" for line in table.splitlines())


def _candidates(one: Data) -> str:
    rows = (
        (
            ("* " if found["pool"] == one["container"]["pool"] else "  ")
            + found["pool"],
            found["sentence"],
            " ".join(f"{score['by']}={score['value']}" for score in found["scores"]),
        )
        for found in one["candidates"]
    )
    return format_table(("  pool", "before those below, as", "scores"), rows)


def _holdings(one: Data) -> Iterator[str]:
    own = f", its own: {one['exclusive']}" if one["exclusive"] else ""
    yield f"  has    CPUs {one['cpus'] or 'any'}{own}; memory of nodes {_mems(one)}"
    asks = one["request"]
    limits = (
        f"{cpus_text(asks['cpuLimit'])} CPU" if asks["cpuLimit"] is not None else "",
        f"{size_text(asks['memoryLimit'])} memory" if asks["memoryLimit"] else "",
    )
    limit = ", ".join(filter(None, limits)) or "none"
    yield (
        f"  asks   {cpus_text(asks['cpu'])} CPU, {size_text(asks['memory'])} memory; "
        f"limits: {limit}"
    )
    yield f"  known  from {one['source']}, {one['accuracy']}; QoS {one['qos']}"
    if one["pool"]:
        yield f"  pool   {one['pool']}"
    if found := one["verification"]:
        yield f"  kernel {in_force_text(found)}"


def _mems(one: Data) -> str:
    return one["mems"] or "any"


def _chapter(chapter: Data) -> tuple[str, ...]:
    because = chapter.get("because")
    why = f"because of {because}" if because else chapter.get("sentence", "")
    return (
        f"#{chapter['number']}",
        chapter["time"],
        chapter["kind"],
        chapter.get("cpus", "-"),
        chapter.get("mems", "-"),
        why or f"because of {chapter['kind']}",
    )
