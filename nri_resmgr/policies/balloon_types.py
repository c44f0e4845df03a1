"""Builds the balloon types of a configuration for a machine."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.balloon_types import BalloonTypeConfig, ExpressionConfig
from nri_resmgr.config.balloons import BalloonsConfig
from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.hints import path_hint
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.sockets import WhyNoDevices
from nri_resmgr.policies.reserved_balloons import (
    ReservedCpus,
    exactly,
    per_socket,
    reserved_type,
)
from nri_resmgr.policy.affinity import Expression, Operator
from nri_resmgr.policy.balloons.choose_type import parts_of
from nri_resmgr.policy.balloons.settings import (
    DEFAULT,
    RESERVED,
    BalloonType,
    LoadClass,
    ShareLevel,
)
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.topology import CoreKind, Machine, MemoryKind
from nri_resmgr.values import NO_CPUS, CpuSet, HostError, InputError, NodeSet

_POD_RESOURCE: Final = "podresourceapi:"
_NOT_FAR: Final = (
    "has no effect: only preferCloseToDevices can name resources of the kubelet"
)
_FAR: Final = "preferFarFromDevices"

# nri-plugins' "pmem" is all memory that is slower than DRAM and has no CPUs.
_KINDS: Final = {
    "dram": frozenset((MemoryKind.DRAM,)),
    "hbm": frozenset((MemoryKind.HBM,)),
    "pmem": frozenset((MemoryKind.PMEM, MemoryKind.CXL)),
    "cxl": frozenset((MemoryKind.CXL,)),
}
_CORES: Final = {
    "performance": CoreKind.PERFORMANCE,
    "efficient": CoreKind.EFFICIENT,
}
_NODE: Final = re.compile(r"/sys/devices/system/node/node(\d+)", re.ASCII)
_CPU: Final = re.compile(r"/sys/devices/system/cpu/cpu(\d+)", re.ASCII)
_LISTS: Final = ("cpulist", "shared_cpu_list", "local_cpulist", "cpulistaffinity")


class _LocatedType(msgspec.Struct, frozen=True):
    """A type with the CPU sets that it prefers, avoids, and has balloons on."""

    written: BalloonTypeConfig
    near: tuple[CpuSet, ...] = ()
    far: tuple[CpuSet, ...] = ()
    homes: tuple[CpuSet, ...] = ()


def balloon_types(
    config: BalloonsConfig, reserved: ReservedCpus, machine: Machine, tree: Tree | None
) -> tuple[BalloonType, ...]:
    """Make the balloon types of *config* for *machine*.

    Raises:
        BadSetting: They do not fit it.
    """
    written = _with_built_in(config, reserved)
    located = [_locate(one, config, reserved, machine, tree) for one in written]
    close = tuple(dict.fromkeys(near for one in located for near in one.near))
    return tuple(_type(one, close, config, machine) for one in located)


def expressions_of(written: Iterable[ExpressionConfig]) -> tuple[Expression, ...]:
    """Validate expressions.

    Raises:
        BadSetting: One of them cannot be evaluated for a container.
    """
    return tuple(map(_expression, written))


def _expression(written: ExpressionConfig) -> Expression:
    words = {one.value: one for one in Operator} | {"NotExists": Operator.NOT_EXIST}
    if written.operator not in words:
        known = " or ".join(Operator)
        raise BadSetting(f"{written.path}.operator", f"unknown value, expected {known}")
    found = Expression(written.key, words[written.operator], written.values)
    try:
        found.check()
    except InputError as error:
        raise BadSetting(written.path, str(error)) from None
    return found


def _with_built_in(
    config: BalloonsConfig, reserved: ReservedCpus
) -> list[BalloonTypeConfig]:
    path, types = "$.spec.balloonTypes", list(config.types)
    names = [one.name for one in types]
    # Types are matched in this order: reserved first, default last.
    if RESERVED not in names:
        built_in = BalloonTypeConfig(path=path, name=RESERVED, priority="low")
        types.insert(0, built_in)
    if DEFAULT not in names:
        types.append(
            BalloonTypeConfig(
                path=path, name=DEFAULT, min_balloons=1, max_balloons=1, priority="low"
            )
        )
    return [
        reserved_type(one, config, reserved) if one.name == RESERVED else one
        for one in types
    ]


def _locate(
    written: BalloonTypeConfig,
    config: BalloonsConfig,
    reserved: ReservedCpus,
    machine: Machine,
    tree: Tree | None,
) -> _LocatedType:
    near = _close_to(written, "close_to", machine, tree)
    homes: tuple[CpuSet, ...] = ()
    if written.prefer_isolated and machine.isolated:
        near.append(machine.isolated)
    if written.core_type:
        near.append(machine.cpus_of_kind(_CORES[written.core_type]))
    if written.name == RESERVED:
        if reserved.cpus is not None and not written.components:
            near.insert(0, reserved.cpus)
        if config.reserved_per_socket:
            written, homes = per_socket(written, config, reserved, machine)
        elif config.reserved_exact and reserved.cpus is not None:
            written = exactly(written, (reserved.cpus,))
    far = _close_to(written, "far_from", machine, tree)
    return _LocatedType(written, tuple(one for one in near if one), tuple(far), homes)


def _close_to(
    written: BalloonTypeConfig, field: str, machine: Machine, tree: Tree | None
) -> list[CpuSet]:
    key = {"close_to": "preferCloseToDevices", "far_from": _FAR}
    found = []
    for place, name in enumerate(getattr(written, field)):
        path = f"{written.path}.{key[field]}[{place}]"
        if name.startswith(_POD_RESOURCE):
            continue  # depends on the container: the policy resolves it
        if not name.startswith("/sys/"):
            raise BadSetting(path, f"expected /sys/... or {_POD_RESOURCE}NAME")
        try:
            found.append(cpus_close_to(name, machine, tree))
        except HostError as error:
            raise BadSetting(path, str(error)) from error
    return found


def _type(
    located: _LocatedType,
    close: Sequence[CpuSet],
    config: BalloonsConfig,
    machine: Machine,
) -> BalloonType:
    one = located.written
    # Like nri-plugins: CPUs that another type prefers are avoided.
    others = tuple(cpus for cpus in close if cpus not in located.near)
    isolated = () if machine.isolated in located.near else (machine.isolated,)
    far = dict.fromkeys(cpus for cpus in (*isolated, *others, *located.far) if cpus)
    explicit = len(one.cpus)  # with explicit CPUs: one balloon for each set
    return BalloonType(
        name=one.name,
        components=one.components,
        balance_components=one.balance_components,
        namespaces=one.namespaces,
        expressions=expressions_of(one.expressions),
        group_by=_group_by(one),
        cpus=one.cpus,
        homes=located.homes,
        min_cpus=0 if explicit else one.min_cpus,
        max_cpus=max(one.max_cpus, 0) if one.max_cpus and not explicit else None,
        min_balloons=explicit or one.min_balloons,
        max_balloons=explicit or one.max_balloons or None,
        spread_pods=one.spread_pods,
        per_namespace=one.per_namespace,
        prefer_new=one.prefer_new,
        share_idle=ShareLevel(one.share_idle) if one.share_idle else None,
        near=located.near,
        devices=tuple(
            name.removeprefix(_POD_RESOURCE)
            for name in one.close_to
            if name.startswith(_POD_RESOURCE)
        ),
        far=tuple(far),
        hide_hyperthreads=one.hide_hyperthreads,
        spread=_first_set(one.topology_balancing, config.topology_balancing),
        one_thread=_first_set(one.spread_on_cores, config.spread_on_cores),
        priority=CpuPriority(one.priority),
        loads=_loads(one, config),
        memory_kinds=_memory_kinds(one.memory_types, _KINDS),
        pin_memory=_first_set(one.pin_memory, config.pin_memory),
        scheduling_class=one.scheduling_class,
        cpu_class=one.cpu_class,
        interrupts=one.interrupts,
        rdt_class=one.rdt_class,
        blockio_class=one.blockio_class,
    )


def _first_set(*flags: bool | None) -> bool:
    return next((flag for flag in flags if flag is not None), False)


def _group_by(one: BalloonTypeConfig) -> str:
    try:
        parts_of(one.group_by)
    except InputError as error:
        raise BadSetting(f"{one.path}.groupBy", str(error)) from None
    return one.group_by


def _loads(one: BalloonTypeConfig, config: BalloonsConfig) -> tuple[LoadClass, ...]:
    loads = (config.load_classes[name] for name in one.loads)
    return tuple(LoadClass(ShareLevel(load.level), load.overloads) for load in loads)


def _memory_kinds(
    words: Iterable[str], known: Mapping[str, frozenset[MemoryKind]]
) -> frozenset[MemoryKind]:
    return frozenset[MemoryKind]().union(*(known[word] for word in words))


def unknown_devices(
    named: Iterable[tuple[str, str]],
    machine: Machine,
    tree: Tree | None,
    why_no_devices: WhyNoDevices,
) -> Iterator[tuple[str, str]]:
    """Yield the devices of a configuration that its preferences do not find, and why.

    Without *tree* only nodes and CPUs are known.
    """
    for path, name in named:
        if name.startswith(_POD_RESOURCE):
            if _FAR in path:
                yield path, f"{name} {_NOT_FAR}"
            elif why := why_no_devices():
                yield path, f"{name} has no effect: {why}"
        elif not _exists(name, machine, tree):
            yield path, f"this machine has no {name}, so it has no effect"


def _exists(name: str, machine: Machine, tree: Tree | None) -> bool:
    if node := _NODE.fullmatch(name):
        return int(node[1]) in machine.node_ids
    if cpu := _CPU.fullmatch(name):
        return int(cpu[1]) in machine.present
    return tree is None or tree.target(name) is not None


def cpus_close_to(path: str, machine: Machine, tree: Tree | None) -> CpuSet:
    """Find the CPUs that a device of sysfs is close to.

    Nodes and single CPUs are taken from the model of the machine, all else from the
    host.

    Returns:
        No CPUs where nothing is known: such a preference has no effect.

    Raises:
        HostError: A file cannot be read or parsed.
    """
    if node := _NODE.fullmatch(path):
        return machine.cpus_of(NodeSet.of(int(node[1])))
    if cpu := _CPU.fullmatch(path):
        return CpuSet.of(int(cpu[1])) & machine.online
    return NO_CPUS if tree is None else _cpus_of_device(path, machine, tree)


def _cpus_of_device(path: str, machine: Machine, tree: Tree) -> CpuSet:
    folder = path.rstrip("/")
    if posixpath.basename(folder) in _LISTS:
        return (optional_cpus(tree, folder) or NO_CPUS) & machine.online
    for name in _LISTS:
        if found := optional_cpus(tree, f"{folder}/{name}"):
            return found & machine.online
    # Not a list of CPUs itself, and none in the folder: the hint of the device.
    real = tree.target(folder)
    hint = None if real is None else path_hint(tree, real)
    if hint is None:
        return NO_CPUS
    return hint.cpus & machine.online or machine.cpus_of(hint.nodes)
