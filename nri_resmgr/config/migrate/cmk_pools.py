"""Converts pools of CMK, which CRI Resource Manager's static-pools policy has, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.config.migrate.converted import Converted
from nri_resmgr.config.migrate.section import Note, Section
from nri_resmgr.values.documents import JsonObject

KIND: Final = "StaticPoolsPolicy"

_POOLS: Final = "pools"
_EXCLUSIVE: Final = "exclusive"
_LISTS: Final = "cpuLists"
_RESOURCE: Final = "cmk.intel.com/exclusive-cores"

_ORIGIN: Final = "Converted from pools of CMK."
_NO_EFFECT: Final = "unknown key, which CRI Resource Manager ignored as well"
_NO_LISTS: Final = "a pool without CPU lists refuses containers, there and here"
_ELSEWHERE: Final = (
    "the pools are not in this file: `nri-resmgr convert {place}` on the node prints a "
    "document with them"
)
_LABEL: Final = "by hand: kubectl label node NODE cmk.intel.com/cmk-node=true"
_TAINT: Final = "by hand: kubectl taint node NODE cmk=true:NoSchedule"

# A conversion is of no node, so that CMK's own place is the only one known.
_FILE: Final = "ConfFilePath"
_FOLDER: Final = "ConfDirPath"
_USUAL_FOLDER: Final = "/etc/cmk"


def is_cmk(document: Mapping[str, object]) -> bool:
    """Return whether a mapping is a file of pools, by name."""
    pools = document.get(_POOLS)
    return isinstance(pools, Mapping) and all(
        isinstance(one, Mapping) for one in pools.values()
    )


def convert_cmk(document: Mapping[str, object]) -> Converted:
    """Convert a file of pools.

    Raises:
        BadSetting: It is not one that CRI Resource Manager accepts.
    """
    notes: list[Note] = []
    top = Section(document, "$", notes)
    spec = {_POOLS: _pools(top.section(_POOLS))}
    _note_resource(top, _POOLS, spec)
    top.note_rest(_NO_EFFECT)
    return Converted([_ORIGIN], KIND, spec, notes)


def read_static_pools(options: Section, policy: Section) -> JsonObject:
    """Read the options of CRI Resource Manager's policy into a spec.

    Args:
        options: Of ``policy.static-pools``.
        policy: The section around it.
    """
    pools = _pools(options.section(_POOLS))
    file = options.text(_FILE, "")
    folder = options.text(_FOLDER, _USUAL_FOLDER)
    spec: JsonObject = {}
    if pools:
        spec[_POOLS] = pools
        _note_resource(policy, "Active", spec)
    else:
        key, place = (_FILE, file) if file else (_FOLDER, folder)
        options.note(key, _ELSEWHERE.format(place=place))
    for key, how in (("LabelNode", _LABEL), ("TaintNode", _TAINT)):
        if options.take(key):
            options.note(key, how)
    return spec


def _pools(rows: Section) -> list[JsonObject]:
    found = []
    for name in rows.names:
        row = rows.section(name, any_case=True)
        pool: JsonObject = {"name": name, **row.copy({_EXCLUSIVE: _EXCLUSIVE})}
        pool[_LISTS] = [_list(one) for one in row.sections(_LISTS)]
        if not pool[_LISTS]:
            rows.note(name, _NO_LISTS)
        row.note_rest(_NO_EFFECT)
        found.append(pool)
    return found


def _list(row: Section) -> JsonObject:
    # There, a list without a socket was one of socket 0.
    found = {"socket": 0, **row.copy({"Cpuset": "cpus", "Socket": "socket"})}
    row.note_rest(_NO_EFFECT)
    return found


def _note_resource(section: Section, key: str, spec: JsonObject) -> None:
    """Note what publishes the number of exclusive lists to the cluster."""
    count = sum(len(one[_LISTS]) for one in spec[_POOLS] if one.get(_EXCLUSIVE))
    if count:
        capacity = f'{{"status":{{"capacity":{{"{_RESOURCE}":"{count}"}}}}}}'
        section.note(
            key,
            "publish the exclusive lists by hand: kubectl patch node NODE "
            f"--subresource=status --type=merge -p '{capacity}'",
        )
