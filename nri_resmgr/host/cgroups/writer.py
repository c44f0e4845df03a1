"""Writes CPUs, memory nodes and weights into the cgroups of containers."""

from __future__ import annotations

import enum
import errno
import os
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.cgroups.write_failures import (
    CPUS,
    MEMS,
    SHARES,
    WEIGHT,
    FailedCgroupWrite,
    described,
    missing_file,
    remedy_for,
)
from nri_resmgr.host.fields import (
    optional_cpus,
    optional_nodes,
    optional_number,
)
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.host.tree import HostFileError, Tree, UnreadableHostFile
from nri_resmgr.values import (
    NO_CPUS,
    NO_NODES,
    CpuSet,
    HostError,
    NodeSet,
)
from nri_resmgr.values.cpu_weights import clamped_shares, weight_for, weights_for

# A cgroup was removed before its file was opened, or between open and write.
_GONE: Final = frozenset({errno.ENOENT, errno.ENODEV})

_SetT = TypeVar("_SetT", CpuSet, NodeSet)
_ValueT = TypeVar("_ValueT", CpuSet, NodeSet, int)

# Containers of a shared pool have the same sets.
_text_of: Final = lru_cache(maxsize=4096)(str)


class CpusetValues(msgspec.Struct, frozen=True):
    """Values of a container's cgroup; empty sets and 0 stand for none.

    Attributes:
        shares: As in the OCI spec, 2 to 262144.
    """

    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES
    shares: int = 0


class WriteOutcome(enum.StrEnum):
    """Result of writing to a container's cgroup."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    ABSENT = "absent"
    FAILED = "failed"


class WriteResult(msgspec.Struct, frozen=True):
    """Result of `CgroupWriter.write`.

    Attributes:
        why: Of a failure: file, value, the kernel's reason and what to do about it.
        before: Values that were written in the cgroup before, of those kinds that
            were to be written; None if the outcome is ABSENT or FAILED. On cgroup v2
            its shares are 0 unless the weight was one of the wanted shares.
        folder: The cgroup that has the cpuset; empty likewise.
    """

    outcome: WriteOutcome
    why: str = ""
    before: CpusetValues | None = None
    folder: str = ""


class _Place(msgspec.Struct, frozen=True):
    """Files of a container's cgroup; where it is two, the outer one's are first."""

    scope: str
    cpus: tuple[str, ...]
    mems: tuple[str, ...]
    weights: tuple[str, ...]


class _Step(msgspec.Struct, frozen=True):
    """One write; *before* is what the file has until then."""

    path: str
    text: str
    before: str


class CgroupWriter:
    """Writes values into cgroups of containers; caches where they are.

    A write of CPUs takes some 60 microseconds, and one of memory nodes as long as the
    kernel takes to move the memory; from an event loop, use a thread. Used from one
    thread at a time.
    """

    def __init__(self, tree: WritableTree) -> None:
        self._tree = tree
        self._finder = CgroupFinder(tree)
        self._is_v2 = self._finder.is_v2
        self._places: dict[str, _Place] = {}

    def cpuset_files(self, reference: CgroupReference) -> tuple[str, ...]:
        """Return the files of a container's CPUs and memory nodes.

        Returns:
            None without processes: the runtime may still make a cgroup below.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        if reference.id not in self._places:
            self._search(reference)
        place = self._places.get(reference.id)
        return (*place.cpus, *place.mems) if place else ()

    def read(self, reference: CgroupReference) -> CpusetValues | None:
        """Read what is written in a container's cgroup, in force or not.

        Returns:
            None without cgroup. On cgroup v2 shares are 0, because weights are not
            exact; to check written shares, write them again.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
            BadHostFile: A file has an invalid value.
        """
        for place in self._places_of(reference):
            cpus = _present(self._tree, place.cpus, optional_cpus)
            mems = _present(self._tree, place.mems, optional_nodes)
            if not cpus and not mems:
                continue
            shares = () if self._is_v2 else self._weights(place)
            return CpusetValues(
                cpus[-1][1] if cpus else NO_CPUS,
                mems[-1][1] if mems else NO_NODES,
                shares[-1][1] if shares else 0,
            )
        return None

    def write(
        self,
        reference: CgroupReference,
        values: CpusetValues,
        known_cpus: CpuSet = NO_CPUS,
    ) -> WriteResult:
        """Write values that differ; empty sets and 0 leave a value as it is.

        If one cannot be written, those written before it are restored. A cgroup that
        cannot be written and has no processes counts as absent: its container ended.

        Args:
            reference: The container.
            values: What its cgroup should have.
            known_cpus: CPUs that it has now, if they are known: reading them takes a
                third of the time of writing others. Not for a comparison.
        """
        failure: HostError | None = None
        try:
            for place in self._places_of(reference):
                try:
                    return self._write(place, values, known_cpus)
                except FailedCgroupWrite as error:
                    failure = error if self._has_processes(place) else None
                    if error.number not in _GONE:
                        break
        except HostFileError as error:
            failure = error
        if failure is None:
            self._places.pop(reference.id, None)
            return WriteResult(WriteOutcome.ABSENT)
        return WriteResult(WriteOutcome.FAILED, str(failure))

    def keep_only(self, containers: Collection[str]) -> None:
        """Discard the cached places of all other containers."""
        for key in self._places.keys() - set(containers):
            del self._places[key]

    def why_unwritable(self) -> str:
        """Return why no cgroup of this host can be written; empty if they can.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        top = CGROUP_ROOT if self._is_v2 else f"{CGROUP_ROOT}/cpuset"
        if not self._has_cpusets(top):
            return f"no cpuset controller in {top} (mount the host's {CGROUP_ROOT})"
        path = f"{top}/cgroup.procs"
        try:
            # Opening changes nothing, and access(2) would not return the reason.
            os.close(os.open(self._tree.root + path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            number = error.errno or 0
            return f"cannot write {path}: {described(number, remedy_for(path, number))}"
        return ""

    def _has_cpusets(self, top: str) -> bool:
        if self._is_v2:
            text = self._tree.read(f"{top}/cgroup.controllers") or ""
            return "cpuset" in text.split()
        return self._tree.read(f"{top}/{CPUS}") is not None

    def _places_of(self, reference: CgroupReference) -> Iterator[_Place]:
        """Yield the cached place, then the one where the cgroup is found again."""
        cached = self._places.get(reference.id)
        if cached is not None:
            yield cached
        found = self._search(reference)
        if found is not None:
            yield found

    def _search(self, reference: CgroupReference) -> _Place | None:
        self._places.pop(reference.id, None)
        one = self._finder.find(reference.id, reference.path, reference.pid)
        if one is None:
            return None
        sets = dict.fromkeys((one.scope, one.cpuset))
        weights = dict.fromkeys((one.cpu_scope, one.cpu))
        weight = WEIGHT if self._is_v2 else SHARES
        place = _Place(
            one.scope,
            tuple(f"{folder}/{CPUS}" for folder in sets),
            tuple(f"{folder}/{MEMS}" for folder in sets),
            tuple(f"{folder}/{weight}" for folder in weights),
        )
        # Below a cgroup without processes, the runtime may still make another.
        if self._tree.read(f"{one.cpuset}/cgroup.procs"):
            self._places[reference.id] = place
        return place

    def _write(
        self, place: _Place, values: CpusetValues, known_cpus: CpuSet
    ) -> WriteResult:
        cpus, mems, shares = values.cpus, values.mems, values.shares
        steps: list[_Step] = []
        if cpus:
            # Of two cgroups, the outer one has more than is known.
            found = (
                [(place.cpus[0], known_cpus)]
                if known_cpus and len(place.cpus) == 1
                else _present(self._tree, place.cpus, optional_cpus)
            )
            cpus = _plan(steps, place.cpus, found, cpus)
        if shares:
            shares = self._plan_weights(steps, place, shares)
        # Nodes last, so that no failure has memory moved twice.
        if mems:
            theirs = _present(self._tree, place.mems, optional_nodes)
            mems = _plan(steps, place.mems, theirs, mems)
        self._perform(steps)
        return WriteResult(
            WriteOutcome.WRITTEN if steps else WriteOutcome.UNCHANGED,
            before=CpusetValues(cpus, mems, shares),
            folder=place.cpus[-1].rpartition("/")[0],
        )

    def _plan_weights(self, steps: list[_Step], place: _Place, shares: int) -> int:
        """Add the writes that lead to shares; return those that were there before."""
        wanted = clamped_shares(shares)
        # Runtimes differ in their weights, and would set theirs again.
        same = weights_for(wanted) if self._is_v2 else (wanted,)
        text = str(weight_for(wanted) if self._is_v2 else wanted)
        levels = self._weights(place)
        if not levels:
            raise missing_file(place.weights, text)
        steps += [_Step(path, text, str(n)) for path, n in levels if n not in same]
        _, found = levels[-1]
        if self._is_v2:
            return shares if found in same else 0
        return found

    def _weights(self, place: _Place) -> list[tuple[str, int]]:
        return _present(self._tree, place.weights, optional_number)

    def _perform(self, steps: list[_Step]) -> None:
        for at, step in enumerate(steps):
            try:
                self._tree.write(step.path, step.text)
            except OSError as error:
                unrestored = tuple(self._restore(steps[:at]))
                raise self._failure(step.path, step.text, error, unrestored) from error

    def _restore(self, steps: list[_Step]) -> Iterator[FailedCgroupWrite]:
        """Undo steps backwards, through states that were allowed; yield failures."""
        for step in reversed(steps):
            try:
                self._write_again(step.path, step.before)
            except OSError as error:
                if error.errno not in _GONE:
                    yield self._failure(step.path, step.before, error)

    def _write_again(self, path: str, text: str) -> None:
        try:
            self._tree.write(path, text)
        except OSError as error:
            # A set of a cgroup with processes cannot become empty again: write what
            # an empty one has in force.
            folder, _, name = path.rpartition("/")
            above = self._tree.read(f"{folder.rpartition('/')[0]}/{name}.effective")
            if text or not above or error.errno != errno.ENOSPC:
                raise
            self._tree.write(path, above)

    def _failure(
        self,
        path: str,
        text: str,
        error: OSError,
        unrestored: tuple[FailedCgroupWrite, ...] = (),
    ) -> FailedCgroupWrite:
        number = error.errno or 0
        remedy = remedy_for(path, number)
        folder, _, name = path.rpartition("/")
        if number == errno.EACCES and name in (CPUS, MEMS):
            # So v1 rejects a set that the parent cgroup does not have, too.
            above = folder.rpartition("/")[0]
            theirs = optional_cpus(self._tree, f"{above}/{name}")
            if theirs and not CpuSet.parse(text) <= theirs:
                remedy = f"{above} has only {theirs}: extend its {name}"
        return FailedCgroupWrite(path, text, number, remedy, unrestored)

    def _has_processes(self, place: _Place) -> bool:
        try:
            return _has_processes(self._tree, place.scope)
        except UnreadableHostFile:
            return True


def _has_processes(tree: Tree, folder: str) -> bool:
    """Return whether a cgroup or one below it has processes.

    Containers may nest cgroups deeper than Python nests calls.
    """
    left = [folder]
    while left:
        at = left.pop()
        text = tree.read(f"{at}/cgroup.procs")
        if text:
            return True
        if text is not None:  # not a file beside those of cgroups
            left += [f"{at}/{name}" for name in tree.names(at)]
    return False


def _present(
    tree: Tree, paths: tuple[str, ...], read: Callable[[Tree, str], _ValueT | None]
) -> list[tuple[str, _ValueT]]:
    """Read the values of those files that there are."""
    return [(path, one) for path in paths if (one := read(tree, path)) is not None]


def _plan(
    steps: list[_Step],
    paths: tuple[str, ...],
    levels: list[tuple[str, _SetT]],
    wanted: _SetT,
) -> _SetT:
    """Add the writes that lead to a set; return the one that was there before.

    Source:
        cpuset(7): on cgroup v1 a cgroup always has what each one below it has.
    """
    if not levels:
        raise missing_file(paths, _text_of(wanted))
    present = dict(levels)
    inner, found = levels[-1]
    way = [(inner, wanted)]
    outer, theirs = levels[0]
    # An outer cgroup without a set of its own confines nothing, and the runtime that
    # left it so would not extend it later.
    if outer != inner and theirs:
        way = [(outer, theirs | wanted), (inner, wanted), (outer, wanted)]
    for path, new in way:
        if present[path] != new:
            steps.append(_Step(path, _text_of(new), _text_of(present[path])))
            present[path] = new
    return found
