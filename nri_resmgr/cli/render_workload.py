"""How manifests were read: what was left out, skipped, or found by its shape."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.scenario.steps import ByShape, Scenario
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable


def workload_sections(workload: Scenario) -> Iterator[str]:
    """Yield how the objects of manifests were read."""
    if workload.by_shape:
        rows = (printable(f"  {_shape(one)}") for one in workload.by_shape)
        yield "\n".join(("pod templates found by their shape", *rows))
    if workload.left_out:
        rows = (printable(f"  {one}: {one.why}") for one in workload.left_out)
        yield "\n".join(("left out", *rows))
    if workload.skipped:
        kinds: dict[str, list[str]] = {}
        for one in workload.skipped:
            kinds.setdefault(one.why, []).append(f"{one.number} {one.kind}")
        rows = (printable(f"  {', '.join(of)}: {why}") for why, of in kinds.items())
        yield "\n".join(("skipped", *rows))


def _shape(one: ByShape) -> str:
    pods = ", ".join(
        f"{part} {count_text(count, 'pod')}".lstrip()
        for part, count in one.pods.items()
    )
    return f"{one.kind} {one.title} ({one.api}): {pods}"


def workload_document(workload: Scenario) -> JsonObject:
    """Return what was not read of manifests, as plain data."""
    return {
        "left_out": to_plain(workload.left_out),
        "skipped": to_plain(workload.skipped),
        "by_shape": to_plain(workload.by_shape),
    }
