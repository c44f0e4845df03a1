"""Which memory class, NUMA policy and misc limits a container asks for, and by what."""

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
    narrowest,
    numa_policy_request,
)
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.memory_classes import parse_numa_policy
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import ResmgrError


def memory_sentences(spec: ContainerSpec, config: PolicyConfig) -> Iterator[str]:
    """Say what the annotations of a container are about, of kinds that are on.

    Args:
        spec: The container. It may run in spite of mistakes: it did before anybody
            could refuse it.
        config: Which classes there are.
    """
    if config.memory_qos is not None:
        yield from _of_qos(spec, config.memory_qos)
    if config.memory_policy is not None:
        yield from _of_policy(spec, config)
    if config.misc_limits:
        yield from _of_limits(spec)


def _of_qos(spec: ContainerSpec, config: MemoryQosConfig) -> Iterator[str]:
    wish = memory_qos_request(spec.pod_tags, spec.name)
    own = {file for file, _ in wish.files}
    if name := wish.class_name:
        key = f"class{QOS_SUFFIX}"
        written = f"{key}/{spec.name}"
        key = written if written in spec.pod_tags else key
        files = _files(MemoryQosRequest(name), own, spec, config)
        yield f"memory class {name}, by annotation {key}: {files}"
    for file, spoken in wish.files:
        files = _files(MemoryQosRequest(files=((file, spoken),)), set(), spec, config)
        yield f"memory, by annotation {spoken.key}: {files}"


def _files(
    wish: MemoryQosRequest,
    without: set[str],
    spec: ContainerSpec,
    config: MemoryQosConfig,
) -> str:
    try:
        found = memory_qos_unified(wish, config, spec.memory_limit, spec.title)
    except ResmgrError as error:
        return f"not so, {error}"
    files = [f"{file} {text}" for file, text in found.items() if file not in without]
    return ", ".join(files) or "sets nothing"


def _of_policy(spec: ContainerSpec, config: PolicyConfig) -> Iterator[str]:
    try:
        wish = numa_policy_request(spec.pod_tags, spec.name)
        if wish is None or config.memory_policy is None:
            return
        classes = config.memory_policy.classes
        found = chosen_numa_policy(wish, classes, parse_numa_policy, spec.title)
    except ResmgrError as error:
        yield f"memory policy: not so, {error}"
        return
    spoken = wish.policy or narrowest(spec.pod_tags, CLASS_KEY, spec.name)
    key = spoken.key if spoken else CLASS_KEY
    named = f"class {wish.class_name}, " if wish.class_name else ""
    words = " ".join(filter(None, (found.mode, found.nodes, *found.flags)))
    yield f"memory policy, {named}by annotation {key}: {words}, set at creation"


def _of_limits(spec: ContainerSpec) -> Iterator[str]:
    tags, name = spec.pod_tags, spec.name
    keys = (narrowest(tags, key, name) for key in (MISC_KEY, EPC_KEY))
    said = ", ".join(one.key for one in keys if one and one.value.strip())
    try:
        limits = misc_limits(tags, name)
    except ResmgrError as error:
        yield f"misc limits: not so, {error}"
        return
    if limits:
        text = ", ".join(f"{what} {amount}" for what, amount in limits.items())
        yield f"misc limits, by annotation {said}: {text}"
