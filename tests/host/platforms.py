"""Drawn devices, resctrl, uncore domains and cgroups of a machine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import strategies as st

from nri_resmgr.topology import (
    CgroupLayout,
    Device,
    DeviceKind,
    Machine,
    Rdt,
    RdtResource,
    Uncore,
)
from nri_resmgr.values import CpuSet, KiloHertz

_COUNTS = st.integers(1, 16)
_KHZ = st.none() | st.integers(1, 4_000_000).map(KiloHertz)
_OPTIONS = st.sampled_from([("rw",), ("rw", "relatime", "cdp", "mba_MBps")])
_EVENTS = ("llc_occupancy", "mbm_total_bytes")


def _cache(name: str) -> st.SearchStrategy[RdtResource]:
    return st.builds(
        RdtResource,
        name=st.just(name),
        closids=_COUNTS,
        mask=st.sampled_from([0x7FF, 0xF, 0xFFFFF]),
        min_bits=st.integers(1, 2),
        sparse=st.booleans(),
    )


_BANDWIDTH = st.builds(
    RdtResource,
    name=st.just("MB"),
    closids=_COUNTS,
    min_percent=_COUNTS,
    step_percent=_COUNTS,
)
_RESOURCES = st.lists(
    st.sampled_from(["L2", "L3", "L3CODE", "L3DATA"]).flatmap(_cache) | _BANDWIDTH,
    unique_by=lambda one: one.name,
    max_size=4,
).map(lambda found: tuple(sorted(found, key=lambda one: one.name)))

_RDT = st.builds(
    Rdt,
    mount=st.sampled_from(["/sys/fs/resctrl", "/run/resctrl"]),
    options=_OPTIONS,
    resources=_RESOURCES,
    rmids=st.integers(0, 8),
    features=st.sampled_from([(), _EVENTS]),
)

_DIES = st.builds(
    lambda package, die, low, high: Uncore(
        f"package_{package:02}_die_{die:02}", package, die, None, low, high
    ),
    st.integers(0, 3),
    st.integers(0, 12),
    _KHZ,
    _KHZ,
)
_DOMAINS = st.builds(
    lambda number, package, domain, low, high: Uncore(
        f"uncore{number:02}", package, None, domain, low, high
    ),
    st.integers(0, 20),
    st.integers(0, 3),
    st.none() | st.integers(0, 3),
    _KHZ,
    _KHZ,
)
_UNCORE = st.lists(_DIES | _DOMAINS, unique_by=lambda one: one.name, max_size=4).map(
    lambda found: tuple(sorted(found, key=lambda one: one.name))
)


@st.composite
def with_platform(draw: st.DrawFn, machine: Machine) -> Machine:
    """Draw all that a machine has beside CPUs and memory."""
    return msgspec.structs.replace(
        machine,
        devices=draw(_devices(machine)),
        uncore=draw(_UNCORE),
        rdt=draw(st.none() | _RDT),
        cgroup=draw(st.none() | st.sampled_from(CgroupLayout)),
    )


@st.composite
def _devices(draw: st.DrawFn, machine: Machine) -> tuple[Device, ...]:
    """Draw PCI functions on up to three buses, some with a disk or a network card."""
    near = {node.id: node.cpus or machine.online for node in machine.nodes}
    found: list[Device] = []
    for bus in range(draw(st.integers(0, 3))):
        around = draw(st.sets(st.sampled_from(list(machine.online)), min_size=1))
        for slot in range(draw(st.integers(0, 2))):
            node = draw(st.none() | st.sampled_from(list(machine.node_ids)))
            cpus = _cpus(node, near, CpuSet.from_iterable(around))
            found += draw(_functions(f"0000:{bus:02x}", slot, (node, cpus)))
    if draw(st.booleans()):
        node = draw(st.none() | st.sampled_from(list(machine.node_ids)))
        cpus = _cpus(node, near, machine.online)
        path = "/sys/devices/platform/mmc0/block/mmcblk0"
        found.append(Device(DeviceKind.BLOCK, "mmcblk0", path, node, cpus))
    order = list(DeviceKind)
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), one.name)))


def _cpus(node: int | None, near: Mapping[int, CpuSet], else_: CpuSet) -> CpuSet:
    return else_ if node is None else near[node]


@st.composite
def _functions(
    draw: st.DrawFn, bus: str, slot: int, place: tuple[int | None, CpuSet]
) -> list[Device]:
    path = f"/sys/devices/pci{bus}/{bus}:{slot:02x}.0"
    functions = [Device(DeviceKind.PCI, f"{bus}:{slot:02x}.0", path, *place)]
    name = f"{bus[-2:]}n{slot}"
    if draw(st.booleans()):
        at = f"{path}/nvme/nvme{name}/nvme{name}n1"
        functions.append(Device(DeviceKind.BLOCK, f"nvme{name}n1", at, *place))
    if draw(st.booleans()):
        functions.append(
            Device(DeviceKind.NET, f"eth{name}", f"{path}/net/eth{name}", *place)
        )
    return functions
