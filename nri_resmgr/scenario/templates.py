"""Pod templates in Kubernetes objects of any kind, found by their shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Final

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.pods import MOST_REPLICAS

# Numbers of pods, beside a template or beside what has it: of Kubernetes' own kinds, of
# Ray (numOfHosts), of Kueue and ECK (count).
_COUNTS: Final = ("replicas", "parallelism", "numOfHosts", "count")
# Stands in for `replicas` where that is left to an autoscaler.
_FEWEST: Final = "minReplicas"
# Of a LeaderWorkerSet: the pods of each replica, one of which is the leader.
_SIZE, _LEADER, _WORKER = "size", "leaderTemplate", "workerTemplate"

# Keys of an object that do not say what should run.
_ABOUT: Final = ("metadata", "status")

# What follows the name of a part in keys such as headGroupSpec, podTemplate.
_SUFFIX: Final = re.compile(r"(group|replica|pod)?(specs?|templates?)$", re.IGNORECASE)


class FoundTemplate(msgspec.Struct, frozen=True):
    """A pod template in an object.

    Attributes:
        part: A word for the part of the object that it is of, unique in the object;
            empty where it is the only one.
        pods: Number of pods.
    """

    template: Table
    part: str
    pods: int


def templates_in(top: Table) -> tuple[FoundTemplate, ...]:
    """Return the pod templates in an object, in the order of its text.

    A template is a mapping whose ``spec`` has a list of ``containers``. The object
    itself is none: a kind that takes containers there may do anything with them.

    Raises:
        BadSetting: A number of pods is invalid.
    """
    desired = Table(top.path, {k: v for k, v in top.rows.items() if k not in _ABOUT})
    found = list(_below(desired, "", 1))
    if len(found) == 1:
        return (msgspec.structs.replace(found[0], part=""),)
    return tuple(_told_apart(found))


def _below(table: Table, part: str, pods: int) -> Iterator[FoundTemplate]:
    pods = _product(table, pods, _pods_in(table))
    for key, one in table.rows.items():
        inside = _product(table, pods, _workers(table, key))
        yield from _find(one, table.at(key), _word_of(key) or part, inside)


def _find(one: object, path: str, part: str, pods: int) -> Iterator[FoundTemplate]:
    if isinstance(one, list):
        for number, item in enumerate(one):
            word = _name_of(item) or f"{part}-{number}".lstrip("-")
            yield from _find(item, f"{path}[{number}]", word, pods)
    elif isinstance(one, Mapping):
        table = Table.read(one, *one, path=path)
        if _is_template(one):
            whole = _product(table, pods, _pods_in(table))
            yield FoundTemplate(table, part, whole)
        else:
            yield from _below(table, part, pods)


def _is_template(one: Mapping[object, object]) -> bool:
    spec = one.get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(each, Mapping) for each in containers)
    )


def _pods_in(table: Table) -> int:
    """Return how many pods a mapping has of each template in it."""
    keys = [key for key in _COUNTS if key in table.rows]
    if "replicas" not in keys and _FEWEST in table.rows:
        keys.append(_FEWEST)
    pods = 1
    for key in keys:
        pods = _product(table, pods, table.number(key, 0, MOST_REPLICAS, 1))
    return pods


def _workers(table: Table, key: str) -> int:
    if key != _WORKER or _SIZE not in table.rows:
        return 1
    return table.number(_SIZE, 1, MOST_REPLICAS, 1) - (_LEADER in table.rows)


def _product(table: Table, one: int, other: int) -> int:
    if one * other > MOST_REPLICAS:
        raise BadSetting(table.path, f"more than {MOST_REPLICAS} pods")
    return one * other


def _word_of(key: object) -> str:
    """Return the word for a part of an object by its key.

    >>> _word_of("headGroupSpec"), _word_of("Worker"), _word_of("template")
    ('head', 'worker', '')
    """
    return _SUFFIX.sub("", str(key)).lower()


def _name_of(item: object) -> str:
    found = item if isinstance(item, Mapping) else {}
    names = (found.get(key) for key in ("name", "groupName"))
    return next((name for name in names if isinstance(name, str)), "")


def _told_apart(found: list[FoundTemplate]) -> Iterator[FoundTemplate]:
    taken: set[str] = set()
    for one in found:
        numbered = (f"{one.part or 'part'}-{number}" for number in count(1))
        names = chain(filter(None, [one.part]), numbered)
        part = next(name for name in names if name not in taken)
        taken.add(part)
        yield msgspec.structs.replace(one, part=part)
