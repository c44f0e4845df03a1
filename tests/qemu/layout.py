"""What the emulated machine looks like: its host builds it, its guest checks it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Node:
    """One NUMA node.

    Attributes:
        cpus: Logical CPU numbers; empty for a node that has only memory.
        memory: Size in MiB.
        distances: To each node in order of their numbers, itself included.

    Source:
        ACPI 6.5, 5.2.17 (SLIT): 10 is local, 255 unreachable.
    """

    cpus: range
    memory: int
    distances: tuple[int, ...]


# Two sockets of two dies, one node per die; the fifth node stands for a CXL card
# in the first socket. Dies matter: without them both nodes of a socket would share
# one last-level cache, which Linux takes for a firmware bug.
SMP = "16,sockets=2,dies=2,cores=2,threads=2"
NODES = (
    Node(range(4), 1024, (10, 12, 21, 21, 30)),
    Node(range(4, 8), 1024, (12, 10, 21, 21, 30)),
    Node(range(8, 12), 1024, (21, 21, 10, 12, 40)),
    Node(range(12, 16), 1024, (21, 21, 12, 10, 40)),
    Node(range(0), 1024, (30, 30, 40, 40, 10)),
)
ISOLATED = "14-15"  # the last core, which only containers that want it get


def qemu_arguments() -> list[str]:
    """Spell the processors, the nodes and their distances for QEMU.

    Source:
        qemu(1), options -smp, -m, -object memory-backend-ram and -numa.
    """
    argv = ["-smp", SMP, "-m", f"{sum(node.memory for node in NODES)}M"]
    argv += ["-machine", "hmat=on"]
    for number, node in enumerate(NODES):
        argv += ["-object", f"memory-backend-ram,id=ram{number},size={node.memory}M"]
        initiator = (
            f"cpus={node.cpus[0]}-{node.cpus[-1]}" if node.cpus else "initiator=0"
        )
        argv += ["-numa", f"node,nodeid={number},memdev=ram{number},{initiator}"]
    for source, node in enumerate(NODES):
        for target, distance in enumerate(node.distances):
            # QEMU refuses another local distance than 10, so it need not be passed.
            if source != target:
                argv += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return argv + _bandwidths()


def _bandwidths() -> list[str]:
    """Describe how fast each node's memory is for each node's CPUs.

    A node without CPUs is known for CXL memory by this alone.

    Source:
        ACPI 6.5, 5.2.28.4 (HMAT, System Locality Latency and Bandwidth).
    """
    argv: list[str] = []
    for source, node in enumerate(NODES):
        for target, distance in enumerate(node.distances if node.cpus else ()):
            pair = f"initiator={source},target={target},hierarchy=memory"
            speed = f"data-type=access-bandwidth,bandwidth={1000 // distance}G"
            argv += ["-numa", f"hmat-lb,{pair},{speed}"]
    return argv
