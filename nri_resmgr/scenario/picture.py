"""The picture of a simulated node, or of two that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.pictures.values import HeldCpus, Holder, Note, Picture, Plan
from nri_resmgr.scenario.estimates import CPU
from nri_resmgr.scenario.findings import Findings, PlacedContainer, group_refusals
from nri_resmgr.scenario.replicas import Group, grouped
from nri_resmgr.values import CpuSet, format_cpus
from nri_resmgr.values.counts import count_text

_HEADINGS: Final = ("before", "after")


class _Container(msgspec.Struct, frozen=True):
    """A container in each of the compared runs; None where it was refused."""

    step: int
    title: str
    placements: tuple[PlacedContainer | None, ...]


def picture_of(*found: Findings) -> Picture:
    """Describe the picture of one simulation, or of two with another configuration.

    Replicas with equal results, in both if there are two, are one holder.
    """
    headings = _HEADINGS if len(found) > 1 else ("",)
    plans = tuple(
        Plan(
            machine=one.machine,
            heading=heading,
            reserved=CpuSet.union(pool.reserved for pool in one.pools),
        )
        for one, heading in zip(found, headings, strict=True)
    )
    groups = grouped(_containers(found), _result)
    return Picture(
        title=_title(found, headings),
        plans=plans,
        holders=tuple(_holder(one, plans) for one in groups),
        notes=tuple(_notes(found, headings)),
    )


def _containers(found: Sequence[Findings]) -> Iterator[_Container]:
    by_id = [{one.id: one for one in each.placements} for each in found]
    for key in dict.fromkeys(key for each in by_id for key in each):
        placements = tuple(each.get(key) for each in by_id)
        known = next(one for one in placements if one)
        yield _Container(known.step, known.title, placements)


def _result(one: _Container) -> tuple[PlacedContainer | None, ...]:
    return tuple(each and replace(each, id="", title="") for each in one.placements)


def _title(found: Sequence[Findings], headings: Sequence[str]) -> str:
    return "; ".join(
        f"{f'{heading}, ' if heading else ''}{one.kind}: "
        f"{count_text(len(one.placements), 'container')}"
        for one, heading in zip(found, headings, strict=True)
    )


def _holder(group: Group[_Container], plans: Sequence[Plan]) -> Holder:
    placements = group.first.placements
    known = next(one for one in placements if one)
    mark = "~" if CPU in (each.amount for each in known.estimates) else ""
    asks = f"{mark}{format_cpus(known.request)}" if known.request else "nothing"
    texts = dict.fromkeys(map(_place, placements))
    places = (
        f"{plan.heading} {_place(one)}"
        for plan, one in zip(plans, placements, strict=True)
    )
    where = "; ".join(texts if len(texts) == 1 else places)
    return Holder(
        title=group.whole_title,
        words=f"({known.qos.value}, asks for {asks}): {where}",
        held=tuple(
            _held(one, plan.machine.online)
            for plan, one in zip(plans, placements, strict=True)
        ),
    )


def _place(one: PlacedContainer | None) -> str:
    if one is None:
        return "not placed"
    return f"CPUs {one.cpus or 'any'}, memory {one.mems or 'any'}"


def _held(one: PlacedContainer | None, online: CpuSet) -> HeldCpus:
    if one is None:
        return HeldCpus()
    # One that is not pinned runs anywhere, also beside exclusive ones.
    return HeldCpus(one.cpus or online, one.exclusive)


def _notes(found: Sequence[Findings], headings: Sequence[str]) -> Iterator[Note]:
    for one, heading in zip(found, headings, strict=True):
        when = f" {heading}" if heading else ""
        for group in group_refusals(one.refusals):
            title, why = group.whole_title, group.first.why
            about = "" if why.startswith(group.first.title) else f"{title}: "
            words = f"{about}{why.replace(group.first.title, title)}"
            yield Note(f"refused{when}: {words}", is_refusal=True)
