"""Synchronization: containers that run, and resizes while there was no session.

What it guarantees: a container that was resized while no daemon ran gets what it would
have got at once, or keeps what it had. A resize that was decided before, by a decision
that the checkpoint lacks, is not decided again.

How: a container with other amounts than the checkpoint has was resized, and nothing
says whether a daemon decided it. So it is tried out. If all containers of the
checkpoint could have what they ask for now and stay where they run, that is what was
decided. Else no daemon did: all get the grants of the amounts that are known, and then
each resize is decided as if it came now, with its refusals. A refused one is logged,
and the container keeps its grant.

Containers that the checkpoint lacks may move in the trial. On a crowded node one of
them may have fallen back, and gets another place once there is room. With known
amounts it could get the room that was granted to a resized one.

Known amounts only count for a container that still runs where the checkpoint says
(`policy.reported`); one that moved since was decided on by its present amounts. Of a
container that is not Guaranteed, the smaller of both amounts counts in the first step.

What was rejected:

* The request of the checkpoint beside the limit that the runtime reports. A container
  that had been resized unseen lost its CPUs, or was placed anew.
* To place all by what they ask for now, at once. The grant of one that asks for more is
  too small for it, so that it would lose its place.

What it costs: if nothing was resized, a comparison for each container. Else one more
decision on all containers, and one for each resize.

Checked by: tests/app/test_catch_up.py, in sessions with a runtime;
tests/laws/test_old_checkpoints.py, in random histories with resizes that are lost,
decided or not.

An example of the former: of eight CPUs in two nodes, CPU 0 is reserved, and `db` and
`web` have two exclusive CPUs each, 4-5 and 1-2. While no daemon runs, `db` is resized.
To 3 CPUs: it gets 4-6. To 1 CPU: it keeps CPU 4. To 7 CPUs, which the node does not
have: it keeps 4-5, and `resize.refused` is in the log. In each case `web` keeps 1-2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, TypeVar

from msgspec.structs import replace

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.plugin.pod_overhead import PodOverheads
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Event, Pin, Synchronized, Updated
from nri_resmgr.policy.ledger import Entry, KnowsContainers
from nri_resmgr.policy.reported import Reported
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.values import (
    NO_CPUS,
    Bytes,
    CpuSet,
    MilliCpus,
    PolicyError,
    QosClass,
)

log = Logger(__name__)

_AMOUNTS: Final = ("request", "limit", "memory_request", "memory_limit", "hugepages")
_amounts_of: Final = attrgetter(*_AMOUNTS)

Limit = TypeVar("Limit", MilliCpus, Bytes)
StateT = TypeVar("StateT", bound=KnowsContainers)


def catch_up(
    there: Synchronized,
    known: Callable[[str], Entry | None],
    would_move: Callable[[Synchronized], AbstractSet[str]],
    handle: Callable[[Event], PolicyDecision],
    overheads: PodOverheads,
) -> tuple[PinUpdate, ...]:
    """Place all running containers, then decide resizes that were missed.

    A container with other amounts than known was resized without a decision, or the
    decision is not in the checkpoint. Where all known ones can have what they ask for
    and stay where they run, it was decided. Else all get their previous grants first:
    that of one that asks for more is too small, so that it would lose its place. The
    overheads of pods come last; those that a checkpoint has are accounted by then.

    Args:
        there: The containers with what they ask for now.
        known: Returns a container as it was at its last event.
        would_move: Returns those that could not have what they ask for where they run.
        handle: Decides an event.
        overheads: Those of present pods.

    Returns:
        The updates of all decisions, one for each container.
    """
    reported = Reported.of(there.specs)
    before = [_as_known(spec, known(spec.id), reported) for spec in there.specs]
    missed = [
        spec for spec, old in zip(there.specs, before, strict=True) if old is not spec
    ]
    if missed and not any(known(key) for key in would_move(there)):
        before, missed = list(there.specs), []
    first = handle(Synchronized(tuple(before), there.pods))
    pins = {one.container: one.pin for one in first.updates}
    for spec in missed:
        _resize(spec, handle, pins)
    for event in overheads.events():
        _add(handle(event).updates, pins)
    return tuple([PinUpdate(key, pin) for key, pin in pins.items()])


def would_move(
    policy: ViewedPolicy[StateT], state: StateT, there: Synchronized
) -> AbstractSet[str]:
    """Return the containers that a policy would not leave where they run.

    Records may lag behind the exclusive CPUs of others, which the policy knows: some
    give them to Guaranteed containers only. Memory nodes that a container had, and that
    were offline meanwhile, it gets again.
    """
    decision = policy.decide(state, there)
    exclusive = CpuSet.union(policy.exclusive_cpus(decision.state).values())
    present = {spec.id: spec.present for spec in there.specs}

    def stays(one: PinUpdate) -> bool:
        runs, entry = present[one.container], state.ledger.entries.get(one.container)
        mems = runs.mems | entry.last_sent.mems if entry else runs.mems
        cpus = (NO_CPUS, runs.cpus, runs.cpus - exclusive)
        return one.pin.cpus in cpus and one.pin.mems <= mems

    return {one.container for one in decision.updates if not stays(one)}


def _as_known(
    spec: ContainerSpec, entry: Entry | None, reported: Reported
) -> ContainerSpec:
    """Return a container with what it asked for when it was placed, if that is less.

    Of a Guaranteed one it may be more: exclusive CPUs that it still runs on.
    """
    # Where it runs was decided later than what is known: with the present amounts.
    if entry is None or not reported.is_known(spec.present, entry):
        return spec
    old = entry.spec
    if _amounts_of(spec) == _amounts_of(old):
        return spec
    is_guaranteed = old.qos is QosClass.GUARANTEED
    return replace(
        spec,
        request=old.request if is_guaranteed else min(spec.request, old.request),
        limit=old.limit if is_guaranteed else _less(spec.limit, old.limit),
        memory_request=min(spec.memory_request, old.memory_request),
        memory_limit=_less(spec.memory_limit, old.memory_limit),
        hugepages=old.hugepages,
    )


def _less(one: Limit | None, other: Limit | None) -> Limit | None:
    """Return the lower of two limits; None is unlimited."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _resize(
    spec: ContainerSpec,
    handle: Callable[[Event], PolicyDecision],
    pins: dict[str, Pin],
) -> None:
    try:
        decision = handle(Updated(spec))
    except PolicyError as error:
        # The runtime has resized it already: it keeps its previous grant.
        log.warning(
            "resize.refused", container=spec.id, title=spec.title, why=str(error)
        )
        return
    resized = (PinUpdate(spec.id, decision.pin),) if decision.pin else ()
    _add((*resized, *decision.updates), pins)


def _add(updates: Sequence[PinUpdate], pins: dict[str, Pin]) -> None:
    for one in updates:
        earlier = pins.get(one.container)
        pins[one.container] = one.pin.over(earlier) if earlier else one.pin
