"""The adjustment that applies to each container, and conflicts between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.known_classes import KnownClasses
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import QosClass

_NOTHING: Final[Mapping[str, str]] = {}


class Judgement(msgspec.Struct, frozen=True):
    """The containers that adjustments apply to, and why they do not.

    Attributes:
        applied: The name of the one adjustment, by id of the container.
        errors: By id of the container, or by name of the adjustment. With any, none of
            the adjustments applies.
        involved: The adjustments that an error is about, by its key.
    """

    applied: Mapping[str, str] = _NOTHING
    errors: Mapping[str, str] = _NOTHING
    involved: Mapping[str, tuple[str, ...]] = {}


def judge(
    adjustments: Sequence[Adjustment],
    containers: Iterable[ContainerSpec],
    classes: KnownClasses,
) -> Judgement:
    """Match adjustments with containers as they are without any.

    Args:
        adjustments: All of this node.
        containers: All of this node.
        classes: Those that adjustments may name.

    Source:
        The texts about conflicts and BestEffort containers are those of CRI Resource
        Manager, for the status of its objects.
    """
    applied, errors, involved = {}, {}, {}
    for spec in containers:
        found = covering(adjustments, spec)
        names = tuple(sorted(one.name for one in found))
        if why := _error(found, names, spec, classes):
            errors[spec.id], involved[spec.id] = why, names
        elif found:
            applied[spec.id] = found[0].name
    return Judgement(applied, errors, involved)


def refused_adjustment(judged: Judgement, container: str, why: str) -> Judgement:
    """Return the judgement with a container that the node has no room for.

    The adjustment may also be one that is gone, where the container as it was does not
    fit any more.
    """
    name = judged.applied.get(container)
    return Judgement(
        judged.applied, {container: why}, {container: (name,) if name else ()}
    )


def covering(
    adjustments: Iterable[Adjustment], spec: ContainerSpec
) -> tuple[Adjustment, ...]:
    """Return the adjustments with a container in their scope."""
    return tuple(one for one in adjustments if one.covers(spec))


def _error(
    found: tuple[Adjustment, ...],
    names: tuple[str, ...],
    spec: ContainerSpec,
    classes: KnownClasses,
) -> str:
    title = f"{spec.pod_name}:{spec.name}"
    if len(found) > 1:
        return f"cache: conflicting adjustments for {title}: {','.join(names)}"
    if found and found[0].has_resources and spec.qos is QosClass.BEST_EFFORT:
        return (
            f"cache: can't adjust resources of BestEffort container {title}: {names[0]}"
        )
    refusal = classes.refusal(found[0], spec.title) if found else None
    return str(refusal or "")
