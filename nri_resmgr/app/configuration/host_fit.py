"""Checks devices, classes and host settings of a configuration against a host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.app.classes.rdt.writer import opener
from nri_resmgr.classes.cpu.check import check
from nri_resmgr.classes.irq.interrupts import ALL, check_allowed
from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.classes.memory import NumaPolicy, PolicyFlag
from nri_resmgr.classes.memory.numa import is_word
from nri_resmgr.classes.rdt import Capabilities, plan_of
from nri_resmgr.classes.rdt.errors import BadClass, CannotAllocate, TooManyClasses
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.config.rdt import RdtUse
from nri_resmgr.host.cgroups.layout import read_cgroup_layout
from nri_resmgr.host.cgroups.partitions import why_no_partitions
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.knobs.cpu import read_cpu_knobs
from nri_resmgr.host.resctrl import ResctrlOptions
from nri_resmgr.host.resctrl.errors import ResctrlNotMounted
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.sockets import WhyNoDevices
from nri_resmgr.policies.balloon_types import unknown_devices
from nri_resmgr.topology import CgroupLayout, Machine
from nri_resmgr.values import NO_NODES, HostError, NodeSet, PolicyError

HostWarning: TypeAlias = tuple[str, str]
"""Path and reason of a setting that the host supports only in part."""

_CPU_CLASSES: Final = "$.spec.cpuClasses"
_RDT: Final = "$.spec.control.rdt"
_BLOCKIO: Final = "$.spec.control.blockio.classes"
_NO_CAPABILITIES: Final = Capabilities({})
_RDT_KEYS: Final = {"L2": "l2Allocation", "L3": "l3Allocation", "MB": "mbAllocation"}
_MEMORY_QOS: Final = "$.spec.memoryQos"
_MEMORY_POLICIES: Final = "$.spec.memoryPolicy.classes"
_EXCLUSIVITY: Final = "$.spec.exclusivity"
_BY_CPUSETS: Final = (
    "the cpusets of all other containers keep them off exclusive CPUs instead, "
    "and host processes stay on these"
)
_NO_FILES: Final = (
    "cgroup v1 has no files for it; containers that request it are refused"
)


def fit_host(
    config: PolicyConfig,
    machine: Machine,
    tree: Tree | None,
    why_no_devices: WhyNoDevices,
) -> Iterator[HostWarning]:
    """Check devices, classes, interrupts and exclusivity against a host.

    Yields:
        What it supports in part, or within limits. Without *tree* only what the
        machine's model knows counts.

    Raises:
        BadSetting: It does not support a setting at all.
        HostError: A file cannot be read.
    """
    devices = config.preferred_devices
    if not config.pod_resources:
        why_no_devices = _not_asked
    yield from unknown_devices(devices, machine, tree, why_no_devices)
    if tree is None:
        return
    if config.interrupts != ALL:
        _fit_claims(config, tree)
    if config.cpu_classes is not None:
        yield from _fit_cpu_classes(config.cpu_classes, machine, tree)
    yield from _fit_rdt_and_blockio(config, tree)
    yield from _fit_memory(config, machine, tree)
    if config.exclusivity is not Exclusivity.CPUSET and (
        why := why_no_partitions(tree)
    ):
        # Only a warning: nodes with other kernels may share the document.
        yield _EXCLUSIVITY, f"{why}; {_BY_CPUSETS}"


def _fit_cpu_classes(
    use: CpuClassUse, machine: Machine, tree: Tree
) -> Iterator[HostWarning]:
    for one in check(use.classes, read_cpu_knobs(tree, machine)):
        path = f"{use.paths.get(one.cpu_class, _CPU_CLASSES)}.{one.key}"
        why = f"{one.why} ({one.file})"
        if one.is_error:
            raise BadSetting(path, why)
        yield path, why


def _fit_claims(config: PolicyConfig, tree: Tree) -> None:
    claims = config.interrupt_claims
    interrupts = read_interrupts(tree) if claims else ()
    for path, patterns in claims:
        try:
            check_allowed(patterns, interrupts, config.interrupts)
        except PolicyError as error:
            raise BadSetting(path, str(error)) from error


def _fit_rdt_and_blockio(config: PolicyConfig, tree: Tree) -> Iterator[HostWarning]:
    if config.rdt is not None:
        yield from _fit_rdt(config.rdt, tree)
    if config.blockio is not None and config.blockio.classes:
        host = BlockIoHost(tree)
        for name, one in host.classes(config.blockio.classes).items():
            for notice in host.notices(one):
                yield f"{_BLOCKIO}.{name}", str(notice)


def _fit_rdt(use: RdtUse, tree: Tree) -> Iterator[HostWarning]:
    capabilities = _NO_CAPABILITIES
    try:
        capabilities = opener(tree, None)(ResctrlOptions()).capabilities()
    except ResctrlNotMounted as error:
        # Only a warning: nodes without RDT may share the document with others.
        yield _RDT, str(error)
    except HostError as error:
        yield _RDT, str(error)
        return  # its capabilities are unknown
    if use.config is None:
        return
    try:
        plan = plan_of(use.config, capabilities)
    except (BadClass, CannotAllocate) as error:
        path = _path_of(error.partition, error.class_name, error.resource)
        raise BadSetting(path, str(error)) from error
    except TooManyClasses as error:
        if capabilities != _NO_CAPABILITIES:
            raise BadSetting(f"{_RDT}.partitions", str(error)) from error
        return  # the missing resctrl is reported above
    for why in plan.ignored:
        yield f"{_RDT}.partitions", why


def _path_of(partition: str, class_name: str, resource: str) -> str:
    path = f"{_RDT}.partitions"
    if partition:
        path += f".{partition}"
    if class_name:
        path += f".classes.{class_name}"
    keys = (key for name, key in _RDT_KEYS.items() if resource.startswith(name))
    key = next(keys, "")
    return f"{path}.{key}" if partition and key else path


def _fit_memory(
    config: PolicyConfig, machine: Machine, tree: Tree
) -> Iterator[HostWarning]:
    # Only warnings: nodes with other cgroups and memory may share the document.
    if config.memory_qos is not None:
        layout = read_cgroup_layout(tree)
        if layout in (CgroupLayout.V1, CgroupLayout.HYBRID):
            yield _MEMORY_QOS, _NO_FILES
    policies = config.memory_policy.classes if config.memory_policy else {}
    for place, policy in enumerate(policies.values()):
        if missing := _explicit_nodes(policy) - machine.node_ids:
            path = f"{_MEMORY_POLICIES}[{place}].policy.nodes"
            why = f"this machine has no node {missing}"
            yield path, f"{why}; containers of the class are refused"


def _explicit_nodes(policy: NumaPolicy) -> NodeSet:
    if is_word(policy.nodes) or PolicyFlag.RELATIVE_NODES in policy.flags:
        return NO_NODES
    return NodeSet.parse(policy.nodes)


def _not_asked() -> str:
    return "agent.podResourceAPI is false"
