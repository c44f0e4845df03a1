"""The containers of a node with the pins last sent, and their order and succession."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, Synchronized

Value = TypeVar("Value")


class Entry(msgspec.Struct, frozen=True):
    """A container with the pin last sent to the runtime, or reported by it."""

    spec: ContainerSpec
    last_sent: Pin = NO_PIN


_NO_ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType({})


class Ledger(msgspec.Struct, frozen=True):
    """All containers by id, in the order in which they came.

    The methods return new ledgers. The state of every policy has one, so that updates
    are computed here only: where desired pins differ from those last sent.

    Attributes:
        entries: The containers.
        pods: The ids of each pod's containers, never changed; `of` computes them.
    """

    entries: MappingProxyType[str, Entry]
    pods: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, entries: Mapping[str, Entry] = _NO_ENTRIES) -> Ledger:
        """Return the ledger of some containers."""
        pods: dict[str, tuple[str, ...]] = {}
        for key, one in entries.items():
            pods[one.spec.pod] = (*pods.get(one.spec.pod, ()), key)
        return cls(MappingProxyType(dict(entries)), pods)

    def __contains__(self, container: str) -> bool:
        return container in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def spec_of(self, container: str) -> ContainerSpec:
        """Return a known container; another id is a ``KeyError``."""
        return self.entries[container].spec

    def last_sent_to(self, container: str) -> Pin:
        """Return the pin last sent for a known container."""
        return self.entries[container].last_sent

    def in_pod(self, pod: str) -> tuple[str, ...]:
        """Return the ids of a pod's containers."""
        return self.pods.get(pod, ())

    def preceding(self, spec: ContainerSpec) -> tuple[str, ...]:
        """Return the ids of containers that must be gone if *spec* is being created."""
        slot, entries = spec.slot, self.entries
        same = (spec.id,) if spec.id in entries else ()
        if not slot or spec.pod not in self.pods:
            return same
        gone = [key for key in self.pods[spec.pod] if entries[key].spec.slot == slot]
        return tuple(dict.fromkeys((*gone, *same)))

    def put(self, spec: ContainerSpec, sent: Pin) -> Ledger:
        """Add or replace a container."""
        key, pod = spec.id, spec.pod
        known, entries = self.entries.get(key), self.entries.copy()
        entries[key] = Entry(spec, sent)
        if known is None:
            pods = self.pods.copy()
            pods[pod] = (*pods.get(pod, ()), key)
            return Ledger(MappingProxyType(entries), pods)
        if known.spec.pod == pod:
            return Ledger(MappingProxyType(entries), self.pods)
        return Ledger.of(entries)

    def drop(self, *containers: str) -> Ledger:
        """Drop containers; unknown ids are ignored."""
        entries, pods = self.entries.copy(), self.pods.copy()
        for container in containers:
            if gone := entries.pop(container, None):
                pod = gone.spec.pod
                left = tuple(key for key in pods.pop(pod) if key != container)
                if left:
                    pods[pod] = left
        return Ledger(MappingProxyType(entries), pods)

    def forget_last_sent(self) -> Ledger:
        """Discard all pins last sent, so that all pins are sent again."""
        entries = {key: Entry(one.spec) for key, one in self.entries.items()}
        return Ledger(MappingProxyType(entries), self.pods)

    def settle(self, wanted: Mapping[str, Pin]) -> tuple[Ledger, tuple[PinUpdate, ...]]:
        """Compute the updates that lead to *wanted*, and record them as sent.

        *wanted* are desired pins of containers for which they may have changed; updates
        are in their order.
        """
        entries = self.entries.copy()
        updates: list[PinUpdate] = []
        known: dict[tuple[int, ...], tuple[Pin | None, Pin]] = {}
        shared: dict[Pin, Pin] = {}
        for key, pin in wanted.items():
            entry = entries[key]
            sent = entry.last_sent
            # Equal pins are usually the same object, so that most need no comparison,
            # and replies encode each once.
            if pin is sent:
                continue
            # As masks: hashing these takes a third of the time of hashing two pins.
            both = (
                pin.cpus.bits,
                pin.mems.bits,
                pin.shares,
                sent.cpus.bits,
                sent.mems.bits,
                sent.shares,
            )
            if (result := known.get(both)) is None:
                changed = pin.since(sent)
                one = shared.setdefault(changed, changed) if changed else None
                result = known[both] = one, pin.over(sent)
            to_send, in_force = result
            if to_send is not None:
                updates.append(PinUpdate(key, to_send))
                entries[key] = Entry(entry.spec, in_force)
        return Ledger(MappingProxyType(entries), self.pods), tuple(updates)


class KnowsContainers(msgspec.Struct, frozen=True):
    """The base of a policy's state: the ledger of all containers."""

    ledger: Ledger


def oldest_first(specs: Iterable[ContainerSpec]) -> list[ContainerSpec]:
    """Sort containers by age, then id, so that placing them has one result.

    Of several with the same id the last one counts. Of several with the same slot,
    which a runtime can have after a crash, the youngest keeps it. The others come last
    and without slot, so that they have no successor.
    """
    ordered = sorted(
        {spec.id: spec for spec in specs}.values(),
        key=lambda spec: (spec.created, spec.id),
    )
    slots = {(spec.pod, spec.slot): spec.id for spec in ordered if spec.slot}
    if len(slots) == sum(bool(spec.slot) for spec in ordered):
        return ordered
    left = [one for one in ordered if one.slot and slots[one.pod, one.slot] != one.id]
    ids = {one.id for one in left}
    rest = [spec for spec in ordered if spec.id not in ids]
    return rest + [msgspec.structs.replace(one, slot="") for one in left]


def of_pods_there(
    slots: Mapping[tuple[str, str], Value], event: Synchronized
) -> dict[tuple[str, str], Value]:
    """Keep the slots of pods that still exist, as far as that is known.

    They are sorted: the order of a checkpoint says nothing.
    """
    known = sorted(slots)
    if event.pods is not None:
        pods = event.pods | {spec.pod for spec in event.specs}
        known = [slot for slot in known if slot[0] in pods]
    return {slot: slots[slot] for slot in known}


def of_other_pods(
    slots: Mapping[tuple[str, str], Value], pod: str
) -> dict[tuple[str, str], Value]:
    """Leave out the slots of a pod."""
    return {slot: value for slot, value in slots.items() if slot[0] != pod}


def former_places_since(
    former: Mapping[tuple[str, str], Value],
    ledger: Ledger,
    event: Synchronized,
    place_of: Callable[[str], Value | None],
) -> dict[tuple[str, str], Value]:
    """Return the former places that a synchronization leaves, by slot.

    Added are those of containers that have gone meanwhile, and dropped those of pods
    that have.

    Args:
        former: The former places until now, by slot.
        ledger: The containers until now.
        event: Has the running containers.
        place_of: Returns the place of a container of the ledger; None if it has none
            to which a successor could return.
    """
    places, running = dict(former), {spec.id for spec in event.specs}
    for key, entry in ledger.entries.items():
        spec = entry.spec
        if spec.slot and key not in running and (place := place_of(key)) is not None:
            places[spec.pod, spec.slot] = place
    return of_pods_there(places, event)
