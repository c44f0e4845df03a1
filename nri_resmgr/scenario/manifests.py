"""Texts of workloads: a scenario, or Kubernetes manifests of one or several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.scenario.documents import documents_in
from nri_resmgr.scenario.kinds import KINDS
from nri_resmgr.scenario.objects import LIST, Found, objects_in
from nri_resmgr.scenario.pod_names import OwnedPods, kept_apart
from nri_resmgr.scenario.read import read_scenario
from nri_resmgr.scenario.steps import LeftOut, Scenario, Skipped
from nri_resmgr.values import InputError

_MOST_NAMES: Final = 5
_OWNED: Final = "the objects that own them are read"


@dataclass(eq=False)
class BadFile(InputError):
    """A file of the command line has a mistake."""

    file: str
    mistake: Exception

    def __str__(self) -> str:
        return f"{self.file}: {self.mistake}"


@dataclass(eq=False)
class SameObject(InputError):
    """Two files have an object of the same kind and name."""

    title: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.title} is in {self.first} and in {self.second}"


def read_workload(text: str) -> Scenario:
    """Read a scenario, or the pods of Kubernetes manifests.

    Manifests are one or more documents. Objects of which no pods come, such as those of
    kind Service, are skipped, as are fields without effect on placement. Objects of
    other kinds, of which pods may come, are left out.

    Raises:
        BadSyntax: The text is not YAML.
        BadSetting: The first mistake, or no manifest has pods.
    """
    parts = documents_in(text)
    if _are_manifests(parts):
        return workload_of(list(_found(parts)))
    if len(parts) > 1:
        raise BadSetting("$", "a scenario is one document, but there are several")
    return read_scenario(parts[0] if parts else None)


def read_workloads(
    texts: Mapping[str, str], unread: Sequence[LeftOut] = ()
) -> Scenario:
    """Read the workload of some files together; a scenario has to be the only one.

    Args:
        texts: By the names of their files.
        unread: The files that are left out.

    Raises:
        BadFile: The first mistake, with its file.
        SameObject: Two files have the same object.
        BadSetting: No manifest has pods.
    """
    if len(texts) == 1:
        ((file, text),) = texts.items()
        with _in_file(file):
            scenario = read_workload(text)
        left_out = (*scenario.left_out, *unread)
        return msgspec.structs.replace(scenario, left_out=left_out)
    return workload_of([*read_objects(texts), *unread])


def read_objects(texts: Mapping[str, str]) -> list[Found]:
    """Read the objects of manifests in some files.

    Raises:
        BadFile: The first mistake, with its file.
        SameObject: Two files have the same object.
    """
    found: list[Found] = []
    files: dict[str, str] = {}  # by the title of an object
    for file, text in texts.items():
        with _in_file(file):
            here = list(_of_several(file, text))
        for title in {_title_of(one) for one in here} - {""}:
            if (first := files.setdefault(title, file)) != file:
                raise SameObject(title, first, file)
        found += here
    return found


@contextmanager
def _in_file(file: str) -> Iterator[None]:
    try:
        yield
    except InputError as mistake:
        raise BadFile(file, mistake) from None


def _are_manifests(parts: Iterable[object]) -> bool:
    return any(isinstance(part, Mapping) and "apiVersion" in part for part in parts)


def _found(parts: Iterable[object]) -> Iterator[Found]:
    for number, part in enumerate(parts):
        yield from objects_in(part, f"$[{number}]")


def _of_several(file: str, text: str) -> Iterator[Found]:
    parts = documents_in(text)
    if _are_manifests(parts):
        for one in _found(parts):
            is_left_out = isinstance(one, LeftOut)
            yield msgspec.structs.replace(one, file=file) if is_left_out else one
    elif any(isinstance(part, Mapping) and "story" in part for part in parts):
        raise BadSetting("$", "a scenario is of one node, and has to be the only file")
    else:
        yield LeftOut("", "", "", "it has no Kubernetes object", file, is_file=True)


def _title_of(one: Found) -> str:
    return one.title if isinstance(one, OwnedPods) and not one.is_generated else ""


def workload_of(found: Sequence[Found]) -> Scenario:
    """Return the scenario that runs all pods.

    Raises:
        BadSetting: There are none.
    """
    found = list(without_owned(found))
    owned = [one for one in found if isinstance(one, OwnedPods)]
    steps = tuple(kept_apart(owned))
    left_out = tuple(one for one in found if isinstance(one, LeftOut))
    if not steps:
        raise BadSetting("$", _without_pods(left_out))
    return Scenario(
        machine="",
        document="",
        steps=steps,
        left_out=left_out,
        skipped=counted(one for one in found if isinstance(one, Skipped)),
        by_shape=tuple(one.shape for one in owned if one.shape),
    )


def without_owned(found: Sequence[Found]) -> Iterator[Found]:
    """Skip pods and the like of objects that are read as well, as in a cluster's dump.

    A Deployment is read with its replicas, so that neither its ReplicaSets nor their
    pods are.
    """
    read = {one.title for one in found if isinstance(one, OwnedPods)}
    for one in found:
        if isinstance(one, OwnedPods) and any(
            f"{kind} {one.pods.namespace}/{name}" in read for kind, name in one.owners
        ):
            yield Skipped(one.kind, 1, _OWNED)
        else:
            yield one


def counted(found: Iterable[Skipped]) -> tuple[Skipped, ...]:
    """Add up the objects of each kind that are skipped for one reason."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts[one.why, one.kind] += one.number
    return tuple(Skipped(kind, counts[why, kind], why) for why, kind in sorted(counts))


def _without_pods(left_out: Sequence[LeftOut]) -> str:
    text = f"no manifest has pods; known kinds: {', '.join((*KINDS, LIST))}"
    if not left_out:
        return text
    names = ", ".join(map(str, left_out[:_MOST_NAMES]))
    more = len(left_out) - _MOST_NAMES
    return f"{text}; left out: {names}" + (f" and {more} more" if more > 0 else "")
