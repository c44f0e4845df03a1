"""Where containers were from one time to the next, during a replay."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import msgspec

from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.scenario.not_exclusive import exclusive_by_container
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet, QosClass


class Place(msgspec.Struct, frozen=True):
    """Where a container is.

    Attributes:
        title: ``namespace/pod/container``.
        cpus: CPUs that it may use; empty for any.
        exclusive: The exclusive ones of these.
        mems: Its memory nodes; empty for any.
        pool: The pool that grants its CPUs; empty where it is in none.
    """

    title: str
    qos: QosClass
    cpus: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES
    pool: str = ""


class Stay(msgspec.Struct, frozen=True):
    """A container in one place; times are UNIX nanoseconds."""

    container: str
    place: Place
    begin: int
    end: int


@attrs.define(eq=False, repr=False)
class Timeline:
    """Collects the stays of containers.

    Attributes:
        stays: Those that have ended, in the order of their ends.
        node_of: The NUMA node of each CPU that was ever online.
    """

    stays: list[Stay] = attrs.field(factory=list)
    node_of: dict[int, int] = attrs.field(factory=dict)
    _open: dict[str, tuple[int, Place]] = attrs.field(factory=dict)
    _machine: Machine | None = None

    def know(self, machine: Machine) -> None:
        """Note the nodes of a machine's CPUs; the same machine again costs nothing."""
        if machine is not self._machine:
            self._machine = machine
            self.node_of |= {cpu: machine.node_of(cpu).id for cpu in machine.online}

    def note(self, time: int, places: Mapping[str, Place]) -> None:
        """Note where all present containers are, by id; those not named are gone.

        Of several places at one time, only the last one counts.
        """
        for container, (_, place) in tuple(self._open.items()):
            if places.get(container) != place:
                self._close(container, time)
        for container, place in places.items():
            self._open.setdefault(container, (time, place))

    def finish(self, time: int) -> None:
        """End the stays of all containers that are still present."""
        self.note(time, {})

    def _close(self, container: str, time: int) -> None:
        begin, place = self._open.pop(container)
        if begin < time:
            self.stays.append(Stay(container, place, begin, time))


def places_of(
    policy: ViewedPolicy[KnowsContainers], state: KnowsContainers
) -> Mapping[str, Place]:
    """Return where the containers of a state are, by id."""
    exclusive, pins = exclusive_by_container(policy, state), policy.pins(state)
    pool_of = {
        key: pool.name for pool in policy.pools(state) for key in pool.containers
    }
    return {
        key: Place(
            title=entry.spec.title,
            qos=entry.spec.qos,
            cpus=pins[key].cpus,
            exclusive=exclusive[key],
            mems=pins[key].mems,
            pool=pool_of.get(key, ""),
        )
        for key, entry in state.ledger.entries.items()
    }
