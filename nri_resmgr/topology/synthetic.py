"""Synthetic machines, built from a short text for tests and simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, cycle, islice, repeat
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from nri_resmgr.topology.cores import Cache, CacheKind, Core, CoreKind, Cpu, cache_order
from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import MemoryKind, Node
from nri_resmgr.topology.spec import (
    BadMachineSpec,
    MachineSpec,
    Numbering,
    parse_words,
)
from nri_resmgr.values import Bytes, CpuSet

_Group = TypeVar("_Group", Core, Cache)

_PAGE: Final = 4 << 10

# Efficient cores come in modules of four that share a level 2 cache.
_MODULE: Final = 4

# Distances as server firmware reports them.
_SAME_NODE: Final = 10
_SAME_PACKAGE: Final = 12
_OTHER_PACKAGE: Final = 21
# Distance that a kind of memory adds to that of the node it is attached to.
_FARTHER: Final = {
    MemoryKind.DRAM: 4,
    MemoryKind.HBM: 3,
    MemoryKind.PMEM: 7,
    MemoryKind.CXL: 14,
}

_L1_DATA: Final = Bytes(48 << 10)
_L1_INSTRUCTION: Final = Bytes(32 << 10)
_L2: Final = Bytes(2 << 20)
_L3: Final = Bytes(32 << 20)


class _Place(msgspec.Struct, frozen=True):
    """A node without its id, with the node that its memory is attached to."""

    package: int
    owner: int  # index of a node with CPUs
    farther: int
    node: Node


def parse_spec(text: str) -> Machine:
    """Build the machine that a short text describes.

    The first word is the shape, counts with a letter each, outermost first:
    ``s`` sockets, ``d`` dies per socket, ``n`` nodes per die (per socket where
    no dies are given), and in each node ``c`` cores of ``t`` threads and ``e``
    efficient cores of one thread. The default is 1 (``e``: 0). CPUs are
    numbered as Linux does on servers: first threads of all cores, then second
    ones; with efficient cores, core by core. Further words, in any order:

    ======================= ==================================================
    ``memory=16Gi,0``       memory of the nodes with CPUs, repeated as needed
    ``hbm=4x16Gi:movable``  memory-only nodes, count and size; so too ``cxl``,
                            ``pmem``, ``dram``; spread evenly over the nodes
    ``hugepages=2Mi:64``    pools of each node with CPUs, ``,`` between sizes
    ``l3=4,2``              cores that share a level 3 cache, repeated in each die
                            as needed (default: all of a die)
    ``cluster=4``           cores in a cluster (default: no clusters)
    ``around=2``            sockets in a node (default: sockets are around nodes)
    ``emulated=4``          emulated NUMA: nodes with the same CPUs, which each node
                            is split into
    ``ids=0,2,8``           the nodes' ids: nodes with CPUs, then the others
    ``distances=10,21;21,10``  the whole matrix, row by row in the order of ids
    ``numbering=adjacent``  threads of a core are neighbours; or ``split``
    ``offline=3``           CPUs that are present and not online
    ``isolated=4-7``        CPUs that ``isolcpus=`` names
    ======================= ==================================================

    Raises:
        BadMachineSpec: A word is unknown, repeated or has a bad value.
        ContradictoryMachine: The words contradict each other.

    >>> machine = parse_spec("2s2n4c2t cxl=1x64Gi")
    >>> [str(node.cpus) for node in machine.nodes]
    ['0-3,16-19', '4-7,20-23', '8-11,24-27', '12-15,28-31', '']
    """
    return build_machine(parse_words(text))


def build_machine(spec: MachineSpec) -> Machine:
    """Build the machine of a parsed spec; raises what `parse_spec` does."""
    cores = tuple(_cores(spec))
    present = CpuSet.union(core.cpus for core in cores)
    places = tuple(_places(spec, cores))
    online = present - spec.offline
    # Checked by `Machine` like discovered data.
    return Machine(
        cores=tuple(
            sorted(_online_parts(cores, online), key=lambda core: core.cpus.first)
        ),
        cpus=tuple(Cpu(number) for number in online),
        nodes=_nodes(spec, places, online),
        distances=spec.distances
        or tuple(tuple(_distance(a, b) for b in places) for a in places),
        caches=tuple(
            sorted(_online_parts(_caches(spec, cores), online), key=cache_order)
        ),
        present=present,
        isolated=spec.isolated,
    )


def _online_parts(groups: Iterable[_Group], online: CpuSet) -> Iterator[_Group]:
    """Yield the groups with their online CPUs, if they have any."""
    for group in groups:
        if group.cpus & online:
            yield replace(group, cpus=group.cpus & online)


def _cores(spec: MachineSpec) -> Iterator[Core]:
    """Yield all cores including offline ones, node by node."""
    each = spec.cores + spec.efficient
    per_package = spec.dies * spec.nodes * each
    kinds = [CoreKind.PERFORMANCE] * spec.cores + [CoreKind.EFFICIENT] * spec.efficient
    kinds *= spec.sockets * spec.dies * spec.nodes
    for index, cpus in enumerate(_numbered(spec, kinds)):
        package, number = divmod(index, per_package)
        die, place = divmod(number, spec.nodes * each)
        cluster = _cluster(spec, place)
        yield Core(package, die, cluster, id=number, cpus=cpus, kind=kinds[index])


def _numbered(spec: MachineSpec, kinds: Sequence[CoreKind]) -> Iterator[CpuSet]:
    threads = [1 if kind is CoreKind.EFFICIENT else spec.threads for kind in kinds]
    # Hybrid machines number core by core, servers all first threads first.
    adjacent = Numbering.ADJACENT if spec.efficient else Numbering.SPLIT
    split = (spec.numbering or adjacent) is Numbering.SPLIT
    ids = [(t, core) for core, many in enumerate(threads) for t in range(many)]
    order = sorted(ids, key=lambda at: at if split else at[::-1])
    cpus = [CpuSet() for _ in kinds]
    for number, (_, core) in enumerate(order):
        cpus[core] |= CpuSet.of(number)
    yield from cpus


def _cluster(spec: MachineSpec, place: int) -> int | None:
    """Return the number of the cluster of the core at *place* in its die."""
    if not spec.cluster and not spec.efficient:
        return None
    size = spec.cluster or 1
    node, core = divmod(place, spec.cores + spec.efficient)
    strong = -(-spec.cores // size)
    modules = -(-spec.efficient // _MODULE)
    inside = (
        core // size if core < spec.cores else (strong + (core - spec.cores) // _MODULE)
    )
    return node * (strong + modules) + inside


def _caches(spec: MachineSpec, cores: Sequence[Core]) -> Iterator[Cache]:
    """Yield the caches of a server; efficient cores of a module share level 2."""
    per_die = len(cores) // (spec.sockets * spec.dies)
    sizes = enumerate(cycle(spec.l3 or (per_die,)))
    repeated = chain.from_iterable(repeat(number, size) for number, size in sizes)
    l3_of = list(islice(repeated, per_die))  # by place in the die

    def module(core: Core) -> tuple[object, ...]:
        if core.kind is CoreKind.PERFORMANCE:
            return (core.package, core.id)
        return (core.package, core.die, core.cluster, core.kind)

    def last(core: Core) -> tuple[object, ...]:
        return (core.package, core.die, l3_of[core.id % per_die])

    private = [core.cpus for core in cores]
    rows = (
        (1, CacheKind.DATA, private, _L1_DATA),
        (1, CacheKind.INSTRUCTION, private, _L1_INSTRUCTION),
        (2, CacheKind.UNIFIED, _grouped(cores, module), _L2),
        (3, CacheKind.UNIFIED, _grouped(cores, last), _L3),
    )
    for level, kind, groups, size in rows:
        for number, cpus in enumerate(groups):
            yield Cache(level, kind, number, cpus, size)


def _grouped(
    cores: Sequence[Core], key: Callable[[Core], tuple[object, ...]]
) -> list[CpuSet]:
    groups: dict[tuple[object, ...], CpuSet] = {}
    for core in cores:
        groups[key(core)] = groups.get(key(core), CpuSet()) | core.cpus
    return list(groups.values())


def _places(spec: MachineSpec, cores: Sequence[Core]) -> Iterator[_Place]:
    """Yield the nodes with CPUs, then those with only memory."""
    owners = spec.cpu_nodes
    each = len(cores) // owners
    for index in range(owners):
        local = cores[index * each : (index + 1) * each]
        memory = spec.memory[index % len(spec.memory)]
        if spec.emulated > 1:  # in whole pages, as sysfs has it
            memory = Bytes(memory // spec.emulated // _PAGE * _PAGE)
        node = Node(
            index,
            cpus=CpuSet.union(core.cpus for core in local),
            memory=memory,
            hugepages=spec.hugepages,
        )
        for _ in range(spec.emulated):
            yield _Place(local[0].package, index, 0, node)
    for extra in spec.extra:
        for number in range(extra.count):
            owner = number * owners // extra.count
            kind = extra.kind if extra.memory else MemoryKind.DRAM
            movable = extra.movable and bool(extra.memory)
            node = Node(owners, memory=extra.memory, kind=kind, movable=movable)
            package = cores[owner * each].package
            yield _Place(package, owner, _FARTHER[extra.kind], node)


def _nodes(
    spec: MachineSpec, places: Sequence[_Place], online: CpuSet
) -> tuple[Node, ...]:
    ids = tuple(spec.ids) or tuple(range(len(places)))
    if len(ids) != len(places):
        raise BadMachineSpec(f"ids={spec.ids}", f"want {len(places)} ids")
    return tuple(
        replace(place.node, id=number, cpus=place.node.cpus & online)
        for number, place in zip(ids, places, strict=True)
    )


def _distance(a: _Place, b: _Place) -> int:
    if a is b:
        return _SAME_NODE
    if a.owner == b.owner:
        between = _SAME_NODE
    elif a.package == b.package:
        between = _SAME_PACKAGE
    else:
        between = _OTHER_PACKAGE
    return between + a.farther + b.farther
