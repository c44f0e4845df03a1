"""Classes and limits as JSON data: settings, problems, containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from nri_resmgr.app.classes.members import members_of
from nri_resmgr.app.classes.memory.containers import POLICY, QOS, memory_owners
from nri_resmgr.app.classes.placed import blockio_choice, rdt_choice
from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.classes.choice import ClassChoice, ClassRequest, Origin
from nri_resmgr.classes.memory.qos import WHOLE
from nri_resmgr.control.top_tier import top_tier_limits
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values.documents import JsonObject

if TYPE_CHECKING:  # heavy; few nodes have classes
    from nri_resmgr.app.classes.blockio.host import BlockIoHost
    from nri_resmgr.classes.blockio import BlockIoClass

_ORIGINS: Final = {Origin.TYPE: "by its balloon type", Origin.QOS: "by its QoS class"}


def classes_of(policy: NodePolicy) -> JsonObject:
    """Describe each kind of class, None for one that is off, and limits."""
    return {
        "rdt": _rdt(policy),
        "blockio": _blockio(policy),
        "memory": _memory(policy),
        "topTier": top_tier_limits(policy),
    }


def class_sentences(spec: ContainerSpec, policy: NodePolicy) -> Iterator[str]:
    """Yield which RDT and block I/O class a container should have, and why."""
    config, prefers = policy.config, spec.preferences
    if (rdt := config.rdt) is not None:
        choice = rdt_choice(spec, rdt, policy.policy, policy.state)
        if choice:
            host = policy.class_hosts.rdt
            missing = "" if host.has(choice.name) else "; the group does not exist"
            why = _why(choice, prefers.rdt_class)
            yield f"RDT class {choice.name}, {why}{missing}"
    if (blockio := config.blockio) is not None:
        choice = blockio_choice(spec, blockio, policy.policy, policy.state)
        if choice:
            known = blockio.classes is None or choice.name in blockio.classes
            missing = "" if known else "; the class does not exist"
            why = _why(choice, prefers.blockio_class)
            yield f"block I/O class {choice.name}, {why}{missing}"


def _why(choice: ClassChoice, request: ClassRequest | None) -> str:
    if request is not None and request.by_adjustment:
        return f"by {request.key}"
    if request is not None:
        return f"by annotation {request.key}"
    return _ORIGINS[choice.origin]


def _rdt(policy: NodePolicy) -> JsonObject | None:
    use = policy.config.rdt
    if use is None:
        return None
    host = policy.class_hosts.rdt
    members = _members(
        policy, lambda spec: rdt_choice(spec, use, policy.policy, policy.state)
    )
    wanted: Mapping[str, str] = host.plan.schemata if host.plan else {}
    # Configured ones that have no group, and groups of other programs, too.
    names = dict.fromkeys((*wanted, *host.groups))
    return {
        "problem": host.why,
        "monitorsPods": use.monitors,
        "classes": [
            {
                "name": name,
                "managed": name in wanted,
                "wanted": _lines(wanted.get(name)),
                "found": _lines(found.schemata if found else ""),
                "threads": found.threads if found else 0,
                "containers": members.get(name, []),
            }
            for name, found in ((name, host.groups.get(name)) for name in names)
        ],
        **_problems(host.problems),
    }


def _blockio(policy: NodePolicy) -> JsonObject | None:
    use = policy.config.blockio
    if use is None:
        return None
    host = policy.class_hosts.blockio
    members = _members(
        policy, lambda spec: blockio_choice(spec, use, policy.policy, policy.state)
    )
    classes = {} if use.classes is None else host.classes(use.classes)
    return {
        "byName": use.classes is None,
        "classes": [
            {
                "name": name,
                "files": _files(classes, name, host),
                "notices": _notices(classes, name, host),
                "containers": members.get(name, []),
            }
            for name in dict.fromkeys((*classes, *sorted(members)))
        ],
        **_problems(host.problems),
    }


def _memory(policy: NodePolicy) -> JsonObject | None:
    config = policy.config
    if config.memory_qos is None and config.memory_policy is None:
        return None
    owners: dict[tuple[str, str], list[str]] = {}
    for one in memory_owners(policy):
        owners.setdefault((one.kind, one.name), []).append(one.title)
    return {
        "classes": [
            {
                "kind": kind,
                "name": name,
                "settings": settings,
                "containers": sorted(owners.get((kind, name), ())),
            }
            for kind, name, settings in _memory_settings(policy)
        ]
    }


def _memory_settings(policy: NodePolicy) -> Iterator[tuple[str, str, str]]:
    config = policy.config
    if config.memory_qos is not None:
        for name, one in config.memory_qos.classes.items():
            yield QOS, name, f"{one.swapped * 100 / WHOLE:g}% of the limit swapped"
    if config.memory_policy is not None:
        for name, numa in config.memory_policy.classes.items():
            words = (numa.mode, numa.nodes, *numa.flags)
            yield POLICY, name, " ".join(filter(None, words))


def _members(
    policy: NodePolicy, choice_of: Callable[[ContainerSpec], ClassChoice | None]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in members_of(policy, choice_of):
        if one.choice:
            found.setdefault(one.name, []).append(one.title)
    return {name: sorted(titles) for name, titles in found.items()}


def _files(
    classes: Mapping[str, BlockIoClass], name: str, host: BlockIoHost
) -> JsonObject:
    files = classes[name].files(host.features) if name in classes else {}
    return {file: list(lines) for file, lines in files.items()}


def _notices(
    classes: Mapping[str, BlockIoClass], name: str, host: BlockIoHost
) -> list[str]:
    return [str(one) for one in host.notices(classes[name])] if name in classes else []


def _problems(problems: ClassProblems) -> JsonObject:
    return {
        "dropped": problems.dropped,
        "failures": problems.failures,
        "failing": [
            {"what": what, "why": why} for what, why in problems.present.items()
        ],
    }


def _lines(text: str | None) -> list[str]:
    return (text or "").split()
