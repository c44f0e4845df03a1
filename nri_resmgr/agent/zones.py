"""What the daemon says that its node can grant: the answer of ``GET /v1/zones``.

As in `daemon_state`, fields that an older daemon lacks have defaults.
"""

from __future__ import annotations

import msgspec

from nri_resmgr.values import CpuSet, NodeSet


class Amounts(msgspec.Struct, frozen=True):
    """Thousandths of a CPU, or bytes.

    Attributes:
        capacity: There is.
        allocatable: For containers.
        available: For one more container.
    """

    capacity: int = 0
    allocatable: int = 0
    available: int = 0


class Pages(Amounts, frozen=True, kw_only=True):
    """Huge pages of one size, in bytes."""

    size: int


class NumaNode(msgspec.Struct, frozen=True, rename="camel"):
    """A NUMA node.

    Attributes:
        distances: To each node, by its number as text.
    """

    id: int
    distances: dict[str, int] = {}
    cpu: Amounts = Amounts()
    memory: Amounts = Amounts()
    huge_pages: tuple[Pages, ...] = ()


class PoolCpu(msgspec.Struct, frozen=True):
    """Thousandths of a CPU of a pool."""

    capacity: int = 0
    granted: int = 0
    free: int = 0


class PoolMemory(msgspec.Struct, frozen=True):
    """Bytes of a pool."""

    capacity: int = 0
    granted: int = 0


class Pool(msgspec.Struct, frozen=True):
    """A pool or balloon, as the daemon's state has it."""

    kind: str
    name: str
    within: str = ""
    cpus: CpuSet = CpuSet()
    shared: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()
    reserved: CpuSet = CpuSet()
    idle: CpuSet = CpuSet()
    cpu: PoolCpu = PoolCpu()
    mems: NodeSet = NodeSet()
    memory: PoolMemory = PoolMemory()
    labels: dict[str, str] = {}


class ContainerCpu(msgspec.Struct, frozen=True):
    """Thousandths of a CPU of a container; no limit if it has none."""

    request: int = 0
    limit: int | None = None


class PooledContainer(msgspec.Struct, frozen=True):
    """A container that is published in its balloon; its title has its names."""

    title: str
    pool: str
    cpus: CpuSet = CpuSet()
    mems: NodeSet = NodeSet()
    cpu: ContainerCpu = ContainerCpu()


class Pod(msgspec.Struct, frozen=True):
    """A pod with containers."""

    namespace: str
    name: str


class Publish(msgspec.Struct, frozen=True):
    """What the configuration says of the object.

    Attributes:
        fingerprint: Whether it has that of the node's pods.
        force: Whether that of another manager is taken over.
    """

    fingerprint: bool = False
    force: bool = False


class Zones(msgspec.Struct, frozen=True, rename="camel"):
    """The answer.

    Attributes:
        policy: Kind of the policy in force.
        synchronized: Whether the runtime's containers are known.
        publish: None where nothing is to be published.
        single_node: Whether what exceeds the only node with CPUs is refused.
        nodes: By number.
        pools: Those to publish.
        containers: Those to publish in their balloons.
        pods: Those in the fingerprint.
    """

    policy: str = ""
    synchronized: bool = False
    publish: Publish | None = None
    single_node: bool = False
    nodes: tuple[NumaNode, ...] = ()
    pools: tuple[Pool, ...] = ()
    containers: tuple[PooledContainer, ...] = ()
    pods: tuple[Pod, ...] = ()
