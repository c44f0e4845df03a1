"""What has to be done so that groups hold what a plan says; nothing is done here."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl.errors import (
    ExclusiveOverlap,
    ForeignGroup,
    TooManyGroups,
)
from nri_resmgr.host.resctrl.groups import Group, path_in
from nri_resmgr.host.resctrl.journal import Record, group_of
from nri_resmgr.host.resctrl.schemata import (
    Schemata,
    merged,
    overlap,
    parse_schemata,
    render_schemata,
    rounded,
)
from nri_resmgr.host.resctrl.snapshot import Scene


class Steps(msgspec.Struct, frozen=True):
    """What to do, in this order.

    Attributes:
        remove_first: Leftovers of ours whose closids or bits others need.
        make: New groups.
        write: Texts by folder; only those that change something.
        remove_last: The other leftovers of ours.
        meanwhile: What the journal has to say before the first step.
        afterwards: What it has to say after the last.
        shared: Groups of others that have what we want already, and are left alone.
    """

    remove_first: tuple[str, ...]
    make: tuple[str, ...]
    write: Mapping[str, str]
    remove_last: tuple[str, ...]
    meanwhile: Record
    afterwards: Record
    shared: tuple[str, ...]


def steps_to(wanted: Mapping[str, str], scene: Scene) -> Steps:
    """Work out how to get from what there is to what is wanted.

    Args:
        wanted: Schemata by folder; the root group's, if it is to change, too. What a
            text does not name, a group has as if it had never been changed.
        scene: What there is.

    Raises:
        TooManyGroups: There are not enough closids, whatever is removed.
        ForeignGroup: A group of others is in the way.
        ExclusiveOverlap: Two groups want the same bits, and one of them does not share.
    """
    texts = {name: parse_schemata(text) for name, text in wanted.items()}
    changes = {
        name: merged(_unnamed(name, text, scene), text)
        for name, text in texts.items()
        if name not in scene.groups or not _holds(name, text, scene)
    }
    taken = _taken(changes, scene)
    back = {
        name: parse_schemata(text)
        for name, text in scene.record.originals.items()
        if name not in wanted
    }
    _check_exclusive(changes | back, scene, wanted)
    make = tuple(sorted(texts.keys() - scene.groups.keys()))
    first, last = _leftovers(wanted, make, scene)
    meanwhile = msgspec.structs.replace(
        scene.record,
        made=scene.record.made | {*make},
        originals={**taken, **scene.record.originals},
    )
    ours = {*scene.ours, *make, *scene.record.originals, *taken}
    put = {n: t for n, t in back.items() if _changes(scene.groups[n], t)}
    return Steps(
        remove_first=first,
        make=make,
        write={n: render_schemata(t) for n, t in (put | changes).items() if t},
        remove_last=last,
        meanwhile=meanwhile,
        afterwards=_without(meanwhile, {*first, *last, *back}),
        shared=tuple(sorted(texts.keys() - ours - {""})),
    )


def _changes(group: Group, text: Schemata) -> bool:
    return merged(group.schemata, text) != group.schemata


def _holds(name: str, text: Schemata, scene: Scene) -> bool:
    is_changed = _changes(scene.groups[name], rounded(text, scene.step))
    return not is_changed and not _unnamed(name, text, scene)


def _unnamed(name: str, text: Schemata, scene: Scene) -> Schemata:
    """Return what an earlier plan made different, and this one does not name."""
    if name not in scene.groups:
        return {}
    present = scene.groups[name].schemata
    found = {
        resource: {
            key: value
            for key, value in values.items()
            if key not in text.get(resource, {})
            and present.get(resource, {}).get(key, value) != value
        }
        for resource, values in _unchanged(name, scene).items()
    }
    return {resource: values for resource, values in found.items() if values}


def _unchanged(name: str, scene: Scene) -> Schemata:
    """Return what a group had before any plan, as far as that is known."""
    if name in scene.record.originals:
        return parse_schemata(scene.record.originals[name])
    alone = any(group.is_alone for group in scene.groups.values())
    # With such a group, others start with less than the whole.
    return scene.whole if name in scene.ours and not alone else {}


def _taken(changes: Mapping[str, Schemata], scene: Scene) -> dict[str, str]:
    """Return what groups that are not ours had before we changed them."""
    taken = {}
    for name, text in changes.items():
        if name not in scene.groups or name in scene.ours:
            continue
        present = render_schemata(scene.groups[name].schemata)
        if name and not scene.adopts and name not in scene.record.originals:
            path = f"{scene.root}/{name}"
            raise ForeignGroup(name, path, render_schemata(text), present)
        taken[name] = present
    return taken


def _check_exclusive(
    changes: Mapping[str, Schemata], scene: Scene, wanted: Collection[str]
) -> None:
    stay = {
        name: group
        for name, group in scene.groups.items()
        if name in wanted or name not in scene.ours
    }
    then = {n: merged(g.schemata, changes.get(n, {})) for n, g in stay.items()}
    for name, text in changes.items():
        mine = then.get(name, text)
        alone = name in stay and stay[name].is_alone
        for other, group in stay.items():
            clash = other != name and (alone or group.is_alone)
            if clash and (where := overlap(mine, then[other])):
                path = f"{scene.root}/{path_in(name, 'schemata')}"
                one, two = name or ROOT_CLASS, other or ROOT_CLASS
                raise ExclusiveOverlap(one, path, *where, two)


def _leftovers(
    wanted: Collection[str], make: tuple[str, ...], scene: Scene
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split leftovers into those that have to go first, and the others.

    The others go last: until all is well, everything is as it was for what runs in
    them.
    """
    left = sorted(n for n in scene.ours if n in scene.groups and n not in wanted)
    held = [name for name, group in scene.groups.items() if group.has_closid]
    short = len(held) + len(make) - scene.closids if scene.closids and make else 0
    if short > len(left):
        others = tuple(sorted({*held} - {""} - {*left} - {*wanted}))
        classes = tuple(sorted(name for name in wanted if name))
        raise TooManyGroups(classes, others, scene.closids)
    alone = [name for name in left if scene.groups[name].is_alone]
    order = [*alone, *(name for name in left if name not in alone)]
    first = order[: max(short, len(alone))]
    return tuple(first), tuple(name for name in left if name not in first)


def _without(record: Record, gone: Collection[str]) -> Record:
    return Record(
        record.made.difference(gone),
        frozenset(one for one in record.monitors if group_of(one) not in gone),
        {one: text for one, text in record.originals.items() if one not in gone},
    )
