"""Places that are reserved for containers of pods, as JSON data."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nri_resmgr.app.observers.policy_in_force import PolicySnapshot
from nri_resmgr.control.names import NamedContainer
from nri_resmgr.policy.views import Reservation
from nri_resmgr.values.documents import JsonObject


def reservations_of(snapshot: PolicySnapshot) -> Iterator[JsonObject]:
    """Describe all reservations, sorted by pod."""
    yield from map(reservation_of, sorted(snapshot.reservations, key=_place))


def matching_reservations(
    snapshot: PolicySnapshot, found: Collection[NamedContainer]
) -> Iterator[JsonObject]:
    """Describe the reservations of the named containers."""
    for one in sorted(snapshot.reservations, key=_place):
        if named_reservation(one) in found:
            yield reservation_of(one)


def named_reservation(one: Reservation) -> NamedContainer:
    """Return the name of a container that a place is reserved for."""
    spec = one.spec
    return NamedContainer(
        spec.namespace, spec.pod_name, spec.name, "", spec.pod, spec.pod_uid
    )


def reservation_of(one: Reservation) -> JsonObject:
    """Describe a reservation."""
    spec = one.spec
    return {
        "namespace": spec.namespace,
        "pod": spec.pod_name,
        "podUid": spec.pod_uid,
        "name": spec.name,
        "pool": one.pool,
        "cpus": str(one.cpus),
        "mems": str(one.mems),
        "request": {"cpu": spec.request, "memory": spec.memory_request},
        "source": spec.source.value,
    }


def _place(one: Reservation) -> tuple[str, str, str]:
    return one.spec.namespace, one.spec.pod_name, one.spec.name
