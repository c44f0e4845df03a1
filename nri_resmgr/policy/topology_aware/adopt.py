"""Places for running containers: former ones, present ones where legal, or new ones.

`adopt` decides a Synchronize: of a new process, of a new session, and after a change of
the configuration or of the hardware. `policy.reported` says how a report and a
checkpoint are compared, and `app.plugin.catch_up` what becomes of missed resizes.
docs/state.md, "After a restart", has the rules for users.

What it guarantees:

* No running container is refused, and none moves without need. With a checkpoint of any
  age, or with none, it keeps the CPUs that it runs on if they are legal, as far as CPUs
  say what it was granted.
* What a runtime cannot know (the kind of a grant, which CPUs are exclusive, what fell
  back) comes from the former state, as far as it is not older than what runs.
* A container that is adopted has nothing worse than a new one would get.
* The result depends on what runs and on what the former state has, not on the order of
  its records.

How: four attempts, each for all containers before the next one begins:

1. the former grant of a container that runs where that grant is, as far as that and
   other containers' CPUs say (`topology_aware.former`);
2. grants that would explain its present CPUs, the likeliest first (`likely_grants`). A
   container does not own CPUs that are all that another one has to share;
3. the former grant, though it runs elsewhere now;
4. a place as for a new container, which may be a fall-back.

Within an attempt containers with exclusive CPUs come first, since shared CPUs are what
these leave, and those without a request last: they fit anywhere, so until then they are
looked at as if they used nothing.

What was rejected:

* The grants of the checkpoint first, whatever runs. The checkpoint is written after the
  reply, so after a crash it lacks the last decisions; by it, containers would have been
  moved back to CPUs that others had got meanwhile.
* The place of a container that had fallen back, for CPUs or for memory, as if it were
  one that it was granted. It could take the place of others that had all they asked
  for.
* A former grant only if the container asks for the same amounts as then. One that was
  resized lost its CPUs to one that had fallen back onto them. The first attempt goes by
  the present amounts.
* A new state for each container, as in other decisions. It copied five tables for each
  of 5,000 containers; `GrowingState` changes them in place.

What it costs: each attempt looks at the pools for each container that is left. A whole
Synchronize of 500 containers takes 202 ms (docs/benchmarks.md, "Topology-aware
policy").

Checked by: tests/laws/test_old_checkpoints.py (restarts from checkpoints of any age and
order, in random histories of each policy); tests/laws/test_adopted_containers.py;
tests/laws/test_topology_aware_policy.py (sessions end and begin among other events);
tests/laws/test_switch_between_all_policies.py (another policy placed what runs).

An example: in the checkpoint `web` has CPUs 1 and 2. Since then it shrank to CPU 1,
`db` got CPUs 2 and 3, `web` grew again, to CPUs 1 and 4, and the daemon was killed. By
the checkpoint `web` would get CPU 2 back, on which `db` runs; by where they run both
stay:

>>> from nri_resmgr.policy.events import Created, Pin, Synchronized
>>> from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import MilliCpus, QosClass
>>> machine = parse_spec("1s8c1t")
>>> settings = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
>>> policy = TopologyAwarePolicy(machine, settings)
>>> def guaranteed(name: str, cpus: int, present: str = "") -> ContainerSpec:
...     milli, runs = MilliCpus(1000 * cpus), Pin(CpuSet.parse(present))
...     amounts = {"request": milli, "limit": milli, "present": runs}
...     return ContainerSpec(name, name, qos=QosClass.GUARANTEED, **amounts)

>>> old = policy.decide(policy.start(), Created(guaranteed("web", 2))).state
>>> running = (guaranteed("web", 2, "1,4"), guaranteed("db", 2, "2-3"))
>>> found = policy.decide(old, Synchronized(running))
>>> for one in found.reasons:
...     print(one.container, one.rule, one.cpus)
db kept 2-3
web kept 1,4
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.reported import Reported
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.former import view_for
from nri_resmgr.policy.topology_aware.growing_state import GrowingState
from nri_resmgr.policy.topology_aware.make_room import rule_of_displaced
from nri_resmgr.policy.topology_aware.pins import visible
from nri_resmgr.policy.topology_aware.place import (
    FormerGrant,
    PoolPlacement,
    fall_back,
    keep_place,
    place,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView, TopologyAwareState
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError

State: TypeAlias = TopologyAwareState
Claims: TypeAlias = Callable[[Demand, NodeView], Iterable[FormerGrant]]

# Containers with certain CPUs go first, since shared CPUs are what these leave. Those
# without a request go last: they fit even where all CPU is granted.
_ORDER = (CpuKind.EXCLUSIVE, CpuKind.MIXED, CpuKind.RESERVED, CpuKind.PRESERVED)


def adopt(
    specs: Sequence[ContainerSpec],
    known: Mapping[str, FormerGrant],
    state: State,
    settings: TopologyAwareSettings,
) -> tuple[State, dict[str, PoolPlacement]]:
    """Place running containers, the oldest first; never refuses, since they run anyway.

    First come those that run where their *known* former places in this tree of pools
    are, and those whose present CPUs are legal, then those whose former places still
    are, then all others, each group in the given order.
    """
    demands = [demand_of(spec, settings) for spec in specs]
    growing = GrowingState.of(state)
    # Without a former state, another policy may have placed what runs.
    occupancy = occupancy_of(demands, growing.view(settings), is_ours=bool(known))

    placed: dict[str, PoolPlacement] = {}
    for demand, claims in _attempts(demands, known, occupancy):
        if demand.spec.id not in placed:
            found = _keeping_place(demand, growing.view(settings), claims)
            if found is not None:
                _record(growing, demand, found, placed)
    # Running containers cannot be refused.
    lenient = replace(settings, on_failure=OnFailure.SHARED)
    for demand in demands:
        if demand.spec.id not in placed:
            found = _new(demand, growing.view(lenient))
            _record(growing, demand, found, placed)
    return growing.finished(), placed


def _attempts(
    demands: Iterable[Demand], known: Mapping[str, FormerGrant], occupancy: UsedCpus
) -> Iterator[tuple[Demand, Claims]]:
    """Yield what to try for which container, in this order; see `adopt`."""

    def by_grant(demand: Demand, _view: NodeView) -> Iterable[FormerGrant]:
        if not _stays(demand, known):
            return ()
        former = known[demand.spec.id]
        grant = former.grant
        if not grant.fell_back:
            # It runs there, but may have been resized without a decision that is known.
            grant = replace(grant, fraction=demand.fraction)
        return (replace(former, grant=grant),)

    def by_place(demand: Demand, view: NodeView) -> Iterable[FormerGrant]:
        zone = demand.spec.present.mems
        if demand.spec.id in occupancy.guests:
            return ()
        return (
            FormerGrant(one, zone) for one in likely_grants(demand, view, occupancy)
        )

    def by_old_grant(demand: Demand, _view: NodeView) -> Iterable[FormerGrant]:
        former = known.get(demand.spec.id)
        return () if former is None else (former,)

    ordered = sorted(demands, key=_certainty)
    for claims in (by_grant, by_place, by_old_grant):
        yield from ((demand, claims) for demand in ordered)


def _stays(demand: Demand, known: Mapping[str, FormerGrant]) -> bool:
    """Return whether a container runs where its former grant is."""
    former = known.get(demand.spec.id)
    return former is not None and former.is_recent


def _certainty(demand: Demand) -> int:
    if demand.kind in _ORDER:
        return _ORDER.index(demand.kind)
    return len(_ORDER) + (not demand.fraction)


def _keeping_place(
    demand: Demand, view: NodeView, claims: Claims
) -> PoolPlacement | None:
    view = view_for(demand, view)
    for claim in claims(demand, view):
        if found := keep_place(demand, claim, view, Rule.KEPT):
            return found
    return None


def _new(demand: Demand, view: NodeView) -> PoolPlacement:
    """Place a container whose present CPUs are not legal."""
    try:
        return place(demand, view)
    except PolicyError as error:
        # Strict annotations only apply to new containers.
        return fall_back(demand, view, str(error))


def _record(
    growing: GrowingState,
    demand: Demand,
    found: PoolPlacement,
    placed: dict[str, PoolPlacement],
) -> None:
    # With the ledger of the first one: each has its own, and thousands of ledgers with
    # thousands of entries would be gigabytes.
    first = next(iter(placed.values()), found)
    placed[demand.spec.id] = replace(found, memory=first.memory)
    for grant in found.displaced:
        # One that runs already is not among those that are being placed.
        if former := placed.get(grant.container):
            rule = rule_of_displaced(grant)
            placed[grant.container] = replace(former, rule=rule, grant=grant)
    growing.regrant(*found.displaced)
    growing.put(demand.spec, found.grant, found.memory)


class UsedCpus(msgspec.Struct, frozen=True):
    """The CPUs that containers run on, as reported.

    Attributes:
        used: Those of all containers.
        shared: Those that several use, or that are shared for another reason.
        lacking: Those that shared containers lack in their likeliest pools, so that
            they are exclusive, or not sharable at all.
        guests: Ids of containers that run on as many CPUs as they ask for exclusively,
            but do not own them.
        reported: The report, which can be older than what is in force.
    """

    used: CpuSet
    shared: CpuSet
    lacking: CpuSet
    guests: AbstractSet[str]
    reported: Reported

    def present(self, demand: Demand) -> CpuSet:
        """Return the CPUs that a container can have in force."""
        cpus = demand.spec.present.cpus
        if demand.kind is CpuKind.EXCLUSIVE:
            return cpus
        return self.reported.shared_part(cpus)


def likely_grants(
    demand: Demand, view: NodeView, occupancy: UsedCpus
) -> Iterator[Grant]:
    """Guess the grants behind a container's present CPUs, the likeliest first.

    *occupancy* are the CPUs of all containers, this one included.
    """
    present = occupancy.present(demand)
    if demand.kind in (CpuKind.RESERVED, CpuKind.PRESERVED):
        yield grant_of(demand, view.tree.root, CpuSet())
    elif pools := _containing(present, demand, view):
        exclusive = CpuSet()
        if demand.kind is not CpuKind.SHARED:
            exclusive = _exclusive_cpus(demand, view, occupancy)
        for pool in _matching_shared(pools, exclusive, demand, view, occupancy):
            yield grant_of(demand, pool, exclusive)


def occupancy_of(
    demands: Sequence[Demand], view: NodeView, *, is_ours: bool
) -> UsedCpus:
    """Return the CPUs that containers run on, and what these say of each other.

    Where this policy has placed them, the CPUs of a container that shares are never all
    exclusive ones of another container. Another policy may have left them so, and then
    the one that asks for exclusive CPUs has a right to them.
    """
    used = shared = lacking = CpuSet()
    isolated = view.tree.root.isolated
    parts = {_shared_part(one, isolated) for one in demands} if is_ours else set()
    parts.discard(NO_CPUS)
    exclusive, guests = list[ContainerSpec](), set[str]()
    for one in demands:
        if one.kind is CpuKind.EXCLUSIVE:
            if any(part <= one.spec.present.cpus for part in parts):
                guests.add(one.spec.id)
            else:
                exclusive.append(one.spec)
    reported = Reported.of(exclusive)
    for one in demands:
        if one.kind is CpuKind.PRESERVED:
            continue  # it may run on any CPU
        present = one.spec.present.cpus
        if one.kind is not CpuKind.EXCLUSIVE:
            present = reported.shared_part(present)
        shared |= present & used
        used |= present
        if one.kind in (CpuKind.SHARED, CpuKind.RESERVED):
            shared |= present
        if one.kind is CpuKind.SHARED and (pools := _containing(present, one, view)):
            lacking |= pools[0].sharable - present
    return UsedCpus(used, shared, lacking, guests, reported)


def _shared_part(demand: Demand, isolated: CpuSet) -> CpuSet:
    """Return the CPUs that a container shares, as far as they differ from its own."""
    present = demand.spec.present.cpus
    if demand.kind is CpuKind.SHARED:
        return present
    own = present & isolated
    if demand.kind is CpuKind.MIXED and len(own) == demand.count:
        return present - own
    return NO_CPUS


def _exclusive_cpus(demand: Demand, view: NodeView, occupancy: UsedCpus) -> CpuSet:
    """Return a container's exclusive CPUs, hidden threads included."""
    machine, present = view.tree.machine, occupancy.present(demand)
    exclusive = present
    if demand.kind is CpuKind.MIXED:
        # Isolated CPUs are never shared, so any of them are exclusive.
        isolated = present & view.tree.root.isolated
        exclusive = isolated or present - occupancy.shared
        if len(lacking := exclusive & occupancy.lacking) >= demand.count:
            exclusive = lacking
        if len(exclusive) > demand.count:
            return allocate_cpus(CpuRequest(demand.count, exclusive), machine).cpus
    if demand.spec.preferences.hide_hyperthreads and len(exclusive) < demand.count:
        cores = CpuSet.union(machine.core_of(cpu).cpus for cpu in exclusive)
        root = view.tree.root
        unseen = cores & (root.sharable | root.isolated) - occupancy.used
        more = min(demand.count - len(exclusive), len(unseen))
        exclusive |= allocate_cpus(
            CpuRequest(more, unseen, held=exclusive), machine
        ).cpus
    return exclusive


def _matching_shared(
    pools: list[Pool],
    exclusive: CpuSet,
    demand: Demand,
    view: NodeView,
    occupancy: UsedCpus,
) -> list[Pool]:
    """Keep the pools whose shared CPUs equal the present ones, if there are any."""
    if demand.kind is CpuKind.EXCLUSIVE:
        return pools
    seen, pool_ledger = occupancy.present(demand), view.pool_ledger
    # CPUs with just one container are taken to be exclusive.
    others = occupancy.used - occupancy.shared - seen
    like = grant_of(demand, view.tree.root, exclusive)
    # First without these: those that are placed already have their exclusive CPUs.
    for besides in (NO_CPUS, others):
        exact = []
        for pool in pools:
            cpus = exclusive | pool_ledger.free_sharable(pool) - besides
            if visible(cpus, like, view.tree) == seen:
                exact.append(pool)
        if exact:
            return exact
    return pools


def _containing(cpus: CpuSet, demand: Demand, view: NodeView) -> list[Pool]:
    """Return the pools that hold *cpus*, those with the container's memory first.

    Shared CPUs change with other containers, memory nodes hardly ever do.
    """
    if not cpus:
        return []
    pools = [pool for pool in view.tree.pools if cpus <= pool.sharable | pool.isolated]
    mems = demand.spec.present.mems
    return sorted(pools, key=lambda pool: (pool.nodes != mems, -pool.depth, pool.id))
