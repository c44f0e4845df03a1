"""What the runtime reports of running containers, compared with what is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.values import CpuSet


class Reported(msgspec.Struct, frozen=True):
    """The running containers of a node, as the runtime reports them.

    A report can be older than what is known: cgroups are written before the runtime's
    record follows, and where partitions keep others off exclusive CPUs it need not
    follow at all. What is known can be older, too: a checkpoint lacks the decisions
    before a crash.

    Attributes:
        owned: The exclusive CPUs of Guaranteed containers.
    """

    owned: CpuSet

    @classmethod
    def of(cls, specs: Iterable[ContainerSpec]) -> Self:
        """Return the report of all running containers."""
        owners = (
            one.present.cpus for one in specs if len(one.present.cpus) == one.whole_cpus
        )
        return cls(CpuSet.union(owners))

    def is_known(self, pin: Pin, entry: Entry) -> bool:
        """Return whether nothing was decided about a container after *entry*.

        Args:
            pin: What the runtime reports of it; what is not reported says nothing.
            entry: What is known.
        """
        sent, cpus = entry.last_sent, pin.cpus
        if cpus and sent.cpus and sent.cpus not in (cpus, cpus - self.owned):
            return False
        return self.is_known_memory(pin, entry)

    @staticmethod
    def is_known_memory(pin: Pin, entry: Entry) -> bool:
        """Return whether nothing was decided about its memory nodes after *entry*."""
        # A running container only gets more memory nodes: others are not from us.
        sent = entry.last_sent.mems
        return not sent or sent == pin.mems or not sent <= pin.mems

    def shared_part(self, cpus: CpuSet) -> CpuSet:
        """Return the CPUs that a container which shares them can have in force."""
        return cpus - self.owned or cpus
