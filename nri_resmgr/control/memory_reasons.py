"""Memory class, NUMA policy and misc limits of a container, and why."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.classes.memory import (
    CLASS_KEY,
    EPC_KEY,
    MISC_KEY,
    QOS_SUFFIX,
    MemoryQosConfig,
    MemoryQosRequest,
    chosen_numa_policy,
    memory_qos_request,
    memory_qos_unified,
    misc_limits,
    numa_policy_request,
)
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.memory_classes import parse_numa_policy
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import ResmgrError
from nri_resmgr.values.annotations import narrowest


def memory_sentences(spec: ContainerSpec, config: PolicyConfig) -> Iterator[str]:
    """Yield the effect of a container's annotations, for kinds that are on.

    Args:
        spec: The container. Its annotations may have mistakes if it was created
            before the daemon started.
        config: The configuration in force.
    """
    if config.memory_qos is not None:
        yield from _of_qos(spec, config.memory_qos)
    if config.memory_policy is not None:
        yield from _of_policy(spec, config)
    if config.misc_limits:
        yield from _of_limits(spec)


def _of_qos(spec: ContainerSpec, config: MemoryQosConfig) -> Iterator[str]:
    request = memory_qos_request(spec.pod_tags, spec.name)
    # Files that annotations set one by one override those of the class.
    overridden = {file for file, _ in request.files}
    if name := request.class_name:
        key = f"class{QOS_SUFFIX}"
        narrow = f"{key}/{spec.name}"
        key = narrow if narrow in spec.pod_tags else key
        files = _files(MemoryQosRequest(name), overridden, spec, config)
        yield f"memory class {name}, by annotation {key}: {files}"
    for file, value in request.files:
        files = _files(MemoryQosRequest(files=((file, value),)), set(), spec, config)
        yield f"memory, by annotation {value.key}: {files}"


def _files(
    request: MemoryQosRequest,
    without: set[str],
    spec: ContainerSpec,
    config: MemoryQosConfig,
) -> str:
    try:
        found = memory_qos_unified(request, config, spec.memory_limit, spec.title)
    except ResmgrError as error:
        return f"not applied, {error}"
    files = [f"{file} {text}" for file, text in found.items() if file not in without]
    return ", ".join(files) or "no effect"


def _of_policy(spec: ContainerSpec, config: PolicyConfig) -> Iterator[str]:
    try:
        request = numa_policy_request(spec.pod_tags, spec.name)
        if request is None or config.memory_policy is None:
            return
        classes = config.memory_policy.classes
        found = chosen_numa_policy(request, classes, parse_numa_policy, spec.title)
    except ResmgrError as error:
        yield f"memory policy: not applied, {error}"
        return
    value = request.policy or narrowest(spec.pod_tags, CLASS_KEY, spec.name)
    key = value.key if value else CLASS_KEY
    named = f"class {request.class_name}, " if request.class_name else ""
    words = " ".join(filter(None, (found.mode, found.nodes, *found.flags)))
    yield f"memory policy, {named}by annotation {key}: {words}, set at creation"


def _of_limits(spec: ContainerSpec) -> Iterator[str]:
    tags, name = spec.pod_tags, spec.name
    keys = (narrowest(tags, key, name) for key in (MISC_KEY, EPC_KEY))
    used = ", ".join(one.key for one in keys if one and one.value.strip())
    try:
        limits = misc_limits(tags, name)
    except ResmgrError as error:
        yield f"misc limits: not applied, {error}"
        return
    if limits:
        text = ", ".join(f"{what} {amount}" for what, amount in limits.items())
        yield f"misc limits, by annotation {used}: {text}"
