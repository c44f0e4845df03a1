"""Puts an adjustment into the spec of a container, and takes it out again.

What it guarantees:

* An adjustment leaves no trace: `unadjusted` of an adjusted container is the container
  as it was. A resize by the kubelet meanwhile changes these own values.
* What an adjustment does not name stays as the container has it. Amounts and classes
  are all that it can change, never the QoS class, the pod or what annotations say
  besides.
* A limit is never below its request: the container's own limit is raised to an adjusted
  request.

How: policies know nothing of adjustments. They get a `ContainerSpec` in which the
fields are replaced already, so that to adjust a running container is to resize it, by
the same decision, with the same refusals. `Adjusted`, in the spec, keeps the replaced
fields; it is in the checkpoint with the spec, so that a new process can undo what its
predecessor did.

The difficult part is that the runtime has the adjusted limits in its record, and
reports them with each later event, beside values of the kubelet. `without_adjustment`
takes a reported value for ours if the adjustment leads to it, or an earlier one whose
values the record may still have (`decided_amounts`), and then puts the container's own
one in its place. Any other value is the kubelet's, and becomes the own one. A kubelet
that sets just such a value is not recognised.

These earlier values are not in the checkpoint: what a process has decided and the
runtime was not given before the process ended looks like a resize to the next one.

What it does not do: two adjustments are never merged. As in CRI Resource Manager, two
that match one container are a conflict, for which the whole set is rejected
(`judgement`). There, one amount replaced all four of them; here those that it leaves
out stay.

What it costs: each container is compared with each adjustment of the node, at most
`MOST` (`read`), when it is created and when adjustments change.

Checked by: tests/app/test_adjustments.py, with any adjustments in any order under each
policy: grants stay legal, and everything is undone in the end.

An example: 500m of at most 600m, and 750m for a night.

>>> own = ContainerSpec("db", request=MilliCpus(500), limit=MilliCpus(600))
>>> night = Adjustment("night", everywhere=True, request=MilliCpus(750))
>>> adjusted = with_adjustment(own, night)
>>> adjusted.request, adjusted.limit, adjusted.memory_limit
(750, 750, None)
>>> unadjusted(adjusted) == own
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.decided_amounts import Amounts
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.policy.events import Adjusted, ContainerSpec, RequestOrigin
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.requests import quota_of, shares_of
from nri_resmgr.stub.model import (
    Container,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
)
from nri_resmgr.values import Bytes, MilliCpus

_FIELDS: Final = (
    "request",
    "limit",
    "memory_request",
    "memory_limit",
    "source",
    "preferences",
)
"""The fields of a spec that an adjustment changes, and `Adjusted` keeps."""

_BOTH: Final = (True, True)

_Amount = TypeVar("_Amount", MilliCpus, Bytes)


def unadjusted(spec: ContainerSpec) -> ContainerSpec:
    """Return a container as it is without its adjustment."""
    own = spec.adjusted
    if own is None:
        return spec
    return replace(
        spec, adjusted=None, **{name: getattr(own, name) for name in _FIELDS}
    )


def with_adjustment(own: ContainerSpec, found: Adjustment) -> ContainerSpec:
    """Return a container, as it is without any adjustment, with one."""
    request = own.request if found.request is None else found.request
    memory = (
        own.memory_request if found.memory_request is None else found.memory_request
    )
    return replace(
        own,
        request=request,
        limit=_limit(found.limit, own.limit, request),
        memory_request=memory,
        memory_limit=_limit(found.memory_limit, own.memory_limit, memory),
        source=RequestOrigin.ADJUSTMENT if found.has_resources else own.source,
        preferences=_preferences(own.preferences, found),
        adjusted=_kept(own, found.name),
    )


def as_known(own: ContainerSpec, known: ContainerSpec) -> ContainerSpec:
    """Return a container with the adjustment that it had at an earlier event."""
    if known.adjusted is None:
        return own
    fields: dict[str, Any] = {name: getattr(known, name) for name in _FIELDS}
    return replace(own, adjusted=_kept(own, known.adjusted.name), **fields)


def in_record(container: Container, decided: Sequence[Amounts]) -> tuple[Amounts, ...]:
    """Return those decided amounts that the runtime's record may still have.

    Args:
        container: As the runtime reports it.
        decided: Amounts decided for it, the oldest first.

    Returns:
        Those from the first on that it has. If it has none, the kubelet has changed
        it: those of which it still has a limit, and the last ones, which follow.
    """
    resources = container.linux.resources if container.linux else None
    if resources is None:
        return tuple(decided)
    limits = [_common_limits(resources, one) for one in decided]
    if _BOTH in limits:
        return tuple(decided[limits.index(_BOTH) :])
    last = len(decided) - 1
    return tuple(one for at, one in enumerate(decided) if any(limits[at]) or at == last)


def without_adjustment(
    container: Container, own: ContainerSpec, decided: Sequence[Amounts]
) -> Container:
    """Return a container as the runtime would report it without its adjustment.

    The runtime's record has limits that were adjusted, which must not be taken for
    those of the kubelet.

    Args:
        container: As the runtime reports it.
        own: Its spec at an earlier event, without an adjustment.
        decided: See `in_record`.
    """
    linux = container.linux
    if not decided or not linux or not linux.resources:
        return container
    found = linux.resources
    cpu, memory = found.cpu or LinuxCpu(), found.memory or LinuxMemory()
    if cpu.shares and cpu.shares in {shares_of(one.request) for one in decided}:
        cpu = replace(cpu, shares=shares_of(own.request))
    limits = {one.limit for one in decided if one.limit is not None}
    if cpu.quota in {_quota(limit, cpu.period) for limit in limits}:
        quota = None if own.limit is None else _quota(own.limit, cpu.period)
        cpu = replace(cpu, quota=quota)
    if memory.limit is not None and memory.limit in {
        one.memory_limit for one in decided
    }:
        memory = replace(memory, limit=own.memory_limit)
    resources = replace(found, cpu=cpu, memory=memory)
    return replace(container, linux=replace(linux, resources=resources))


def _common_limits(resources: LinuxResources, one: Amounts) -> tuple[bool, bool]:
    """Return whether the limits of CPU and of memory are these."""
    cpu, memory = resources.cpu or LinuxCpu(), resources.memory or LinuxMemory()
    quota = 0 if one.limit is None else _quota(one.limit, cpu.period)
    # A limit that is absent, 0 or negative is none.
    return (
        max(cpu.quota or 0, 0) == quota,
        max(memory.limit or 0, 0) == (one.memory_limit or 0),
    )


def _quota(limit: MilliCpus, period: int | None) -> int:
    return quota_of(limit, period) if period else quota_of(limit)


def _limit(
    found: _Amount | None, own: _Amount | None, request: _Amount
) -> _Amount | None:
    if found is not None:
        return found
    return None if own is None else max(own, request)


def _preferences(own: Preferences, found: Adjustment) -> Preferences:
    key = f"adjustment {found.name}"
    changes: dict[str, object] = {}
    if found.rdt_class is not None:
        changes["rdt_class"] = ClassRequest(found.rdt_class, key, by_adjustment=True)
    if found.blockio_class is not None:
        changes["blockio_class"] = ClassRequest(
            found.blockio_class, key, by_adjustment=True
        )
    if found.top_tier_limit is not None:
        changes["top_tier_limit"] = found.top_tier_limit
    return replace(own, **changes) if changes else own


def _kept(own: ContainerSpec, name: str) -> Adjusted:
    return Adjusted(name, **{field: getattr(own, field) for field in _FIELDS})
