"""Computes the changes of groups from a snapshot to a plan, without I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl.errors import (
    ExclusiveOverlap,
    ForeignGroup,
    TooManyGroups,
)
from nri_resmgr.host.resctrl.groups import ResctrlGroup, path_in
from nri_resmgr.host.resctrl.journal import ResctrlRecord
from nri_resmgr.host.resctrl.schemata import (
    Schemata,
    merged,
    overlap,
    parse_schemata,
    render_schemata,
    rounded,
)
from nri_resmgr.host.resctrl.snapshot import ResctrlSnapshot


class Steps(msgspec.Struct, frozen=True):
    """Changes, in this order.

    Attributes:
        remove_first: Unused groups of ours whose closids or bits are needed.
        write: Schemata by folder, if they change anything.
        meanwhile: Content of the journal before the first step.
        afterwards: Content of the journal after the last step.
        shared: Unchanged groups of other programs that have the schemata of a class.
    """

    remove_first: tuple[str, ...]
    make: tuple[str, ...]
    write: Mapping[str, str]
    remove_last: tuple[str, ...]
    meanwhile: ResctrlRecord
    afterwards: ResctrlRecord
    shared: tuple[str, ...]


def steps_to(wanted: Mapping[str, str], snapshot: ResctrlSnapshot) -> Steps:
    """Compute the changes from a snapshot to the desired groups.

    *wanted* are desired schemata by folder, with the root group's if that is to change.
    Resources that a text does not name get their original values.

    Raises:
        TooManyGroups: There are not enough closids, whatever is removed.
        ForeignGroup: A group of another program has the name of a class.
        ExclusiveOverlap: Two groups would have common bits, and one is exclusive.
    """
    texts = {name: parse_schemata(text) for name, text in wanted.items()}
    changes = {
        name: merged(_to_reset(name, text, snapshot), text)
        for name, text in texts.items()
        if name not in snapshot.groups or not _has(name, text, snapshot)
    }
    taken = _originals_of(changes, snapshot)
    restored = {
        name: parse_schemata(text)
        for name, text in snapshot.record.originals.items()
        if name not in wanted
    }
    _check_exclusive(changes | restored, snapshot, wanted)
    make = tuple(sorted(texts.keys() - snapshot.groups.keys()))
    first, last = _unused(wanted, make, snapshot)
    meanwhile = msgspec.structs.replace(
        snapshot.record,
        made=snapshot.record.made | {*make},
        originals={**taken, **snapshot.record.originals},
    )
    ours = {*snapshot.ours, *make, *snapshot.record.originals, *taken}
    put = {n: t for n, t in restored.items() if _changes(snapshot.groups[n], t)}
    return Steps(
        remove_first=first,
        make=make,
        write={n: render_schemata(t) for n, t in (put | changes).items() if t},
        remove_last=last,
        meanwhile=meanwhile,
        afterwards=meanwhile.within(
            {*snapshot.groups, *make} - {*first, *last, *restored}
        ),
        shared=tuple(sorted(texts.keys() - ours - {""})),
    )


def _changes(group: ResctrlGroup, text: Schemata) -> bool:
    return merged(group.schemata, text) != group.schemata


def _has(name: str, text: Schemata, snapshot: ResctrlSnapshot) -> bool:
    is_changed = _changes(snapshot.groups[name], rounded(text, snapshot.step))
    return not is_changed and not _to_reset(name, text, snapshot)


def _to_reset(name: str, text: Schemata, snapshot: ResctrlSnapshot) -> Schemata:
    """Return original values that a plan before changed and this one does not name."""
    if name not in snapshot.groups:
        return {}
    present = snapshot.groups[name].schemata
    found = {
        resource: {
            key: value
            for key, value in values.items()
            if key not in text.get(resource, {})
            and present.get(resource, {}).get(key, value) != value
        }
        for resource, values in _initial(name, snapshot).items()
    }
    return {resource: values for resource, values in found.items() if values}


def _initial(name: str, snapshot: ResctrlSnapshot) -> Schemata:
    """Return the schemata of a group before any plan, as far as known."""
    if name in snapshot.record.originals:
        return parse_schemata(snapshot.record.originals[name])
    alone = any(group.is_alone for group in snapshot.groups.values())
    # Beside an exclusive group, new ones start with less than the whole.
    return snapshot.whole if name in snapshot.ours and not alone else {}


def _originals_of(
    changes: Mapping[str, Schemata], snapshot: ResctrlSnapshot
) -> dict[str, str]:
    """Return the original schemata of groups of other programs to change."""
    taken = {}
    for name, text in changes.items():
        if name not in snapshot.groups or name in snapshot.ours:
            continue
        present = render_schemata(snapshot.groups[name].schemata)
        if name and not snapshot.adopts and name not in snapshot.record.originals:
            path = f"{snapshot.root}/{name}"
            raise ForeignGroup(name, path, render_schemata(text), present)
        taken[name] = present
    return taken


def _check_exclusive(
    changes: Mapping[str, Schemata], snapshot: ResctrlSnapshot, wanted: Collection[str]
) -> None:
    stay = {
        name: group
        for name, group in snapshot.groups.items()
        if name in wanted or name not in snapshot.ours
    }
    then = {n: merged(g.schemata, changes.get(n, {})) for n, g in stay.items()}
    for name, text in changes.items():
        mine = then.get(name, text)
        alone = name in stay and stay[name].is_alone
        for other, group in stay.items():
            clash = other != name and (alone or group.is_alone)
            if clash and (where := overlap(mine, then[other])):
                path = f"{snapshot.root}/{path_in(name, 'schemata')}"
                one, two = name or ROOT_CLASS, other or ROOT_CLASS
                raise ExclusiveOverlap(one, path, *where, two)


def _unused(
    wanted: Collection[str], make: tuple[str, ...], snapshot: ResctrlSnapshot
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split unused groups into those to remove first and last.

    Last where possible: until all steps have succeeded, nothing changes for threads in
    them.
    """
    left = sorted(n for n in snapshot.ours if n in snapshot.groups and n not in wanted)
    held = [name for name, group in snapshot.groups.items() if group.has_closid]
    short = len(held) + len(make) - snapshot.closids if snapshot.closids and make else 0
    if short > len(left):
        others = tuple(sorted({*held} - {""} - {*left} - {*wanted}))
        classes = tuple(sorted(name for name in wanted if name))
        raise TooManyGroups(classes, others, snapshot.closids)
    alone = [name for name in left if snapshot.groups[name].is_alone]
    order = [*alone, *(name for name in left if name not in alone)]
    first = order[: max(short, len(alone))]
    return tuple(first), tuple(name for name in left if name not in first)
