"""Which containers there are, and what the runtime was last told about each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import attrs

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen
class Entry(ByContent):
    """A container with the pinning that the runtime was last told, or told us."""

    spec: ContainerSpec
    told: Pin = NO_PIN


def _frozen(entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
    return MappingProxyType(dict(entries))


@frozen
class Ledger(ByContent):
    """All containers by id, in the order in which they came.

    The methods return new ledgers. Every policy keeps one, so that updates are
    found in one place only: where what should hold differs from what was told.
    """

    entries: Mapping[str, Entry] = attrs.field(
        factory=dict, converter=_frozen, hash=False
    )

    def __contains__(self, container: str) -> bool:
        return container in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def spec_of(self, container: str) -> ContainerSpec:
        """Return a container that is here; another id is a ``KeyError``."""
        return self.entries[container].spec

    def told_to(self, container: str) -> Pin:
        """Return what the runtime knows of a container that is here."""
        return self.entries[container].told

    def in_pod(self, pod: str) -> tuple[str, ...]:
        """Return the ids of a pod's containers."""
        return tuple(key for key, one in self.entries.items() if one.spec.pod == pod)

    def preceding(self, spec: ContainerSpec) -> tuple[str, ...]:
        """Return the ids of those that must be gone if *spec* is being created."""
        return tuple(
            key
            for key, one in self.entries.items()
            if key == spec.id
            or (spec.slot and (spec.slot, spec.pod) == (one.spec.slot, one.spec.pod))
        )

    def put(self, spec: ContainerSpec, told: Pin) -> Ledger:
        """Add a container, or replace what is known of it."""
        return Ledger({**self.entries, spec.id: Entry(spec, told)})

    def drop(self, *containers: str) -> Ledger:
        """Forget containers; ids that are not here are fine."""
        return Ledger(
            {key: one for key, one in self.entries.items() if key not in containers}
        )

    def forget_told(self) -> Ledger:
        """Trust nothing that the runtime was told, so that all is told again."""
        return Ledger({key: Entry(one.spec) for key, one in self.entries.items()})

    def settle(self, wanted: Mapping[str, Pin]) -> tuple[Ledger, tuple[PinUpdate, ...]]:
        """Find what has to be told so that *wanted* holds, and note it as told.

        Args:
            wanted: What should hold, for every container that it may have changed
                for.

        Returns:
            The ledger afterwards, and the updates in the order of *wanted*.
        """
        entries, updates = dict(self.entries), []
        for key, pin in wanted.items():
            entry = entries[key]
            told = entry.told
            # Containers that share have the same sets: identity settles most.
            if pin.cpus is told.cpus and pin.mems is told.mems and not pin.shares:
                continue
            if news := pin.since(told):
                updates.append(PinUpdate(key, news))
                entries[key] = Entry(entry.spec, pin.over(told))
        return Ledger(entries), tuple(updates)


class KnowsContainers(Protocol):
    """What every policy's state has, whatever else is in it."""

    @property
    def ledger(self) -> Ledger:
        """All containers."""
