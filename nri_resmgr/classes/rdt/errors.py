"""What can be wrong with RDT classes, or be too much for a machine."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values.errors import InputError, PolicyError


@dataclass(eq=False)
class BadShare(InputError):
    """Text is not a share of a cache or of bandwidth, or not a list of cache ids."""

    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.text!r}: {self.why}"


@dataclass(eq=False)
class BadClass(InputError):
    """Partitions and classes do not fit together, whatever the machine.

    Attributes:
        class_name: Empty where the partition as such is wrong.
        resource: L2, L3 or MB; empty where it is not about one.
    """

    partition: str
    class_name: str
    resource: str
    why: str

    def __str__(self) -> str:
        return f"{_place(self.partition, self.class_name, self.resource)}: {self.why}"


@dataclass(eq=False)
class MaskRefused(PolicyError):
    """There is no such mask in a cache."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class CannotAllocate(PolicyError):
    """This machine cannot give a partition or a class what it asks for.

    Attributes:
        partition: Empty where it is about all of them.
        class_name: Empty where the partition asks.
        resource: As resctrl names it, with code and data apart: ``L3CODE``.
        cache_id: None where it is about all of them.
    """

    partition: str
    class_name: str
    resource: str
    cache_id: int | None
    why: str

    def __str__(self) -> str:
        place = _place(self.partition, self.class_name, self.resource)
        where = "" if self.cache_id is None else f", cache id {self.cache_id}"
        return f"{place}{where}: {self.why}"


@dataclass(eq=False)
class TooManyClasses(PolicyError):
    """There are more groups than the kernel has closids.

    Attributes:
        wanted: Classes that need a group of their own.
        taken: Groups of others.
        limit: Closids of the machine; the root group has one of them.
        has_cdp: Whether code and data are apart, which takes half of them.
    """

    wanted: int
    taken: int
    limit: int
    has_cdp: bool

    def __str__(self) -> str:
        free = max(self.limit - 1 - self.taken, 0)
        text = f"{self.wanted} RDT classes need a group, and there is room for {free}"
        reason = f"{self.limit} closids (info/*/num_closids), 1 for the root group"
        if self.taken:
            reason += f", {self.taken} for groups of others"
        help_ = "have fewer classes"
        if self.has_cdp:
            help_ += ", or mount resctrl without cdp and cdpl2"
        return f"{text}: {reason}; {help_}"


def _place(partition: str, class_name: str, resource: str) -> str:
    parts = [f"RDT partition {partition!r}" if partition else "RDT partitions"]
    if class_name:
        parts.append(f"class {class_name!r}")
    if resource:
        parts.append(resource)
    return ", ".join(parts)
