"""Places for containers that run already: theirs if legal, else new ones, by age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.static.place import Placement, Room, place, pool_rule


def adopt(
    specs: Sequence[ContainerSpec], known: Mapping[str, Pin], room: Room
) -> dict[str, Placement]:
    """Place running containers; never refuses, for they run anyway.

    Who is where it may be stays there. Next come those whose grant we remember
    and the runtime does not, then the others, each in the order given.

    Args:
        specs: Who runs, oldest first.
        known: Earlier grants by container id.
        room: What can be granted besides.

    Returns:
        A placement for every container, by id.
    """
    taking = msgspec.structs.replace(
        room,
        settings=msgspec.structs.replace(room.settings, on_failure=OnFailure.SHARED),
    )
    exclusive = [spec for spec in specs if pool_rule(spec, room.settings) is None]
    placed: dict[str, Placement] = {}
    present = {spec.id: spec.present for spec in exclusive}
    # Unless we pin CPUs, where a container is has nothing to do with its grant.
    for claims in (present, known) if room.settings.pin_cpus else (known, present):
        for spec in exclusive:
            claim = claims.get(spec.id, NO_PIN).cpus
            if spec.id not in placed and taking.can_grant(claim, spec.whole_cpus):
                placed[spec.id] = Placement(Rule.KEPT, claim)
                taking = msgspec.structs.replace(taking, taken=taking.taken | claim)
    for spec in specs:
        if spec.id not in placed:
            placed[spec.id] = place(spec, taking)
            taking = msgspec.structs.replace(
                taking, taken=taking.taken | placed[spec.id].cpus
            )
    return placed
