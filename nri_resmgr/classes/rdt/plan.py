"""From partitions and classes to the schemata of resctrl groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nri_resmgr.classes.rdt.bandwidth import bandwidth_line
from nri_resmgr.classes.rdt.caches import class_line, partition_masks, rows_of
from nri_resmgr.classes.rdt.capabilities import Capabilities
from nri_resmgr.classes.rdt.checks import check_config, classes_of, group_of
from nri_resmgr.classes.rdt.errors import CannotAllocate, TooManyClasses
from nri_resmgr.classes.rdt.settings import (
    BANDWIDTH,
    LEVELS,
    ROOT_CLASS,
    Allocations,
    RdtClass,
    RdtConfig,
    RdtPartition,
)


class Plan(msgspec.Struct, frozen=True):
    """Groups with their schemata.

    Attributes:
        schemata: By the name of a class, which is that of its folder: lines ``L2``,
            ``L3``, ``MB``, each ended, for one write; empty text for nothing to write.
            Without the root group.
        root: The text of the root group; None to leave it unchanged.
        ignored: Sentences on requests that this machine lacks the resource for.
    """

    schemata: Mapping[str, str]
    root: str | None = None
    ignored: tuple[str, ...] = ()


def plan_of(config: RdtConfig, machine: Capabilities, *, taken: int = 0) -> Plan:
    """Compute the schemata of all groups.

    Each class gets a line for every resource of the machine, so that a group keeps
    nothing of an earlier configuration.

    *taken* is the number of groups of other programs, each with a closid.

    Raises:
        BadClass: Partitions and classes contradict each other.
        CannotAllocate: The machine has no such mask, bandwidth or resource.
        TooManyClasses: There are more groups than closids.

    Source:
        goresctrl, ``pkg/rdt/config.go``; ``docs/rdt.md`` has the differences.
    """
    check_config(config)
    ignored = tuple(_ignored(config, machine))
    wanted = len({group_of(one) for _, one in classes_of(config)} - {ROOT_CLASS})
    if wanted and wanted + taken + 1 > machine.closids:
        raise TooManyClasses(wanted, taken, machine.closids, machine.has_cdp)
    texts = _texts(config.partitions, machine)
    return Plan(
        {name: text for name, text in texts.items() if name != ROOT_CLASS},
        texts.get(ROOT_CLASS),
        ignored,
    )


def _texts(partitions: Sequence[RdtPartition], machine: Capabilities) -> dict[str, str]:
    masks = {level: partition_masks(partitions, level, machine) for level in LEVELS}

    def lines(partition: RdtPartition, one: RdtClass) -> Iterator[str]:
        for level in LEVELS:
            for row in rows_of(level, machine):
                cache = machine.caches[row[0]]
                yield class_line((partition, one), row, cache, masks[level])
        if machine.bandwidth is not None:
            yield bandwidth_line(partition, one, machine.bandwidth)

    return {
        group_of(one): "".join(lines(partition, one))
        for partition in partitions
        for one in partition.classes
    }


def _ignored(config: RdtConfig, machine: Capabilities) -> Iterator[str]:
    """Yield what this machine lacks; refuse what is required."""
    missing = {level for level in LEVELS if not rows_of(level, machine)}
    if machine.bandwidth is None:
        missing.add(BANDWIDTH)
    for partition in config.partitions:
        place = f"partition {partition.name!r}"
        for resource in partition.allocations.resources:
            if resource in missing:
                yield f"{place}: this machine allocates no {resource}"
        yield from _unknown_units(place, partition.allocations)
    for partition, one in classes_of(config):
        for resource in one.allocations.resources:
            if resource in missing & config.required:
                why = (
                    "this machine allocates none of it; options."
                    f"{resource.lower()}.optional: true would ignore it"
                )
                raise CannotAllocate(partition.name, group_of(one), resource, None, why)
        yield from _unknown_units(f"class {group_of(one)!r}", one.allocations)


def _unknown_units(place: str, allocations: Allocations) -> Iterator[str]:
    for share in (allocations.bandwidth or {}).values():
        for text in share.unknown:
            yield f"{place}: {text!r} is no bandwidth in % or MBps"
