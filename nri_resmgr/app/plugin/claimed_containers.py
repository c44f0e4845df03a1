"""Containers that have the CPUs of claims: they are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from nri_resmgr.app.plugin.cpu_claims import (
    DEFAULT_DRIVERS,
    ClaimedContainer,
    ClaimTable,
    Variable,
    confirm,
    has_variables,
    variables_in,
)
from nri_resmgr.app.plugin.reduced import reduced_container, reduced_pod
from nri_resmgr.app.plugin.translate import KUBELET_NAME, is_alive
from nri_resmgr.kubelet.pod_resources import PodName, PodResources
from nri_resmgr.log import Logger
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.values import NO_CPUS, CpuSet

log = Logger(__name__)

_UNBACKED: Final = (
    "the kubelet names no such device of a known driver for the container; "
    "it is placed as any other"
)


class _Candidate(msgspec.Struct, frozen=True):
    """A container with variables that the kubelet has not confirmed.

    Attributes:
        sandbox: Id of its pod sandbox.
        waiting: Its pod and itself while the policy has not placed it, without the
            parts that no decision uses: environments are private, and may be large.
    """

    pod: PodName
    uid: str
    sandbox: str
    name: str
    title: str
    variables: tuple[Variable, ...]
    waiting: tuple[Pod, Container] | None

    @property
    def is_placed(self) -> bool:
        """True if the policy has placed it meanwhile."""
        return self.waiting is None


class Answered(msgspec.Struct, frozen=True):
    """What follows from an answer of the kubelet.

    Attributes:
        to_place: Containers that have no claim after all.
        to_leave: Ids of placed containers that have one.
    """

    to_place: tuple[tuple[Pod, Container], ...] = ()
    to_leave: tuple[str, ...] = ()


class ClaimedContainers:
    """Finds containers with claims of other CPU drivers, by the kubelet's answers.

    Args:
        book: What the kubelet has answered; None where it is not asked. Then no
            variable is believed.
        drivers: The names of the drivers.

    Attributes:
        table: The claims and their containers.
        taken: CPUs that are out of the policy's reach: those of all claims, unless
            there is a conflict.
        conflict: Why the CPUs of a claim cannot be taken; empty if they are.
        changed: Set when the table has changed, for its file.
        sandboxes: UIDs of pods by the id of their sandbox.
    """

    def __init__(
        self,
        book: PodResources | None = None,
        drivers: Sequence[str] = DEFAULT_DRIVERS,
    ) -> None:
        self.table = ClaimTable()
        self.drivers = tuple(drivers)
        self.taken = NO_CPUS
        self.conflict = ""
        self.changed = asyncio.Event()
        self._book = book
        self.sandboxes: dict[str, str] = {}
        self._candidates: dict[str, _Candidate] = {}

    def begin(self, table: ClaimTable) -> None:
        """Begin with the claims that an earlier process knew."""
        self.table = table

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of containers that wait for the kubelet's answer, and are not pinned."""
        found = self._candidates.items()
        return tuple(key for key, one in found if not one.is_placed)

    def leaves(self, container: str) -> bool:
        """Return whether a container is left alone."""
        if container in self.table.containers:
            return True
        found = self._candidates.get(container)
        return found is not None and not found.is_placed

    # Events of the runtime.

    def sandbox(self, pod: Pod) -> None:
        """Note a pod that the runtime has, and have the kubelet asked about it."""
        self.sandboxes[pod.id] = uid_of(pod)
        self._expect_devices(pod)

    def sandbox_gone(self, pod: Pod) -> None:
        """Note that the sandbox of a pod was removed."""
        self.sandboxes.pop(pod.id, None)
        for key in [k for k, one in self._candidates.items() if one.sandbox == pod.id]:
            del self._candidates[key]
        if self._book is not None and uid_of(pod) not in self.sandboxes.values():
            self._book.forget(name_of(pod), uid_of(pod))
        kept = [one.id for one in self.table.containers.values() if one.pod != pod.id]
        self._put(self.table.keep_only(self.sandboxes.values(), kept))

    def new(self, pod: Pod, container: Container, online: CpuSet) -> bool:
        """Note a container that is being created; return whether to leave it alone."""
        if not has_variables(container.env) or not container.id:
            return False
        variables = self._variables(pod, container, online)
        if not variables:
            return False
        self.sandboxes.setdefault(pod.id, uid_of(pod))
        self._expect(pod)
        self._candidates[container.id] = _Candidate(
            name_of(pod),
            uid_of(pod),
            pod.id,
            _name(container),
            _title(pod, container),
            variables,
            (reduced_pod(pod), reduced_container(container)),
        )
        self._decide(container.id)
        return self.leaves(container.id)

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container], online: CpuSet
    ) -> list[Container]:
        """Begin with what the runtime has; return the containers that are placed."""
        by_id = {pod.id: pod for pod in pods}
        self.sandboxes = {pod.id: uid_of(pod) for pod in pods}
        self._candidates.clear()
        if self._book is not None:
            self._book.keep_only((name_of(pod), uid_of(pod)) for pod in pods)
            for pod in pods:
                self._expect_devices(pod)
        present = [one.id for one in containers if is_alive(one)]
        self._put(self.table.keep_only(self.sandboxes.values(), present))
        placed = []
        for one in containers:
            pod = by_id.get(one.pod_sandbox_id) or Pod(id=one.pod_sandbox_id)
            if not is_alive(one) or not self._is_present_claim(pod, one, online):
                placed.append(one)
        return placed

    def removed(self, container: str) -> None:
        """Drop a container that is gone; its claims keep their CPUs."""
        self._candidates.pop(container, None)
        self._put(self.table.without_container(container))

    # Answers of the kubelet.

    def answered(self, pod: PodName, uid: str) -> Answered:
        """Decide about the containers of a pod of which the kubelet has answered."""
        to_place, to_leave = [], []
        for key, one in tuple(self._candidates.items()):
            if (one.pod, one.uid) != (pod, uid):
                continue
            self._decide(key)
            left = self._candidates.get(key)
            if left is None:
                if one.is_placed:
                    to_leave.append(key)
            elif left.is_placed and one.waiting is not None:
                to_place.append(one.waiting)
        return Answered(tuple(to_place), tuple(to_leave))

    def _expect_devices(self, pod: Pod) -> None:
        if self._book is not None and self._book.asks_all:
            self._expect(pod)

    def _expect(self, pod: Pod) -> None:
        # Pods of other clients of the runtime have no names.
        if self._book is not None and pod.name:
            self._book.expect(name_of(pod), uid_of(pod))

    def _is_present_claim(self, pod: Pod, container: Container, online: CpuSet) -> bool:
        if not has_variables(container.env):
            self._put(self.table.without_container(container.id))
            return False
        variables = self._variables(pod, container, online)
        if variables and self.table.knows(container.id, variables):
            return True
        self._put(self.table.without_container(container.id))
        return self.new(pod, container, online)

    def _variables(
        self, pod: Pod, container: Container, online: CpuSet
    ) -> tuple[Variable, ...]:
        variables, problem = variables_in(container.env, online)
        if problem:
            log.warning("claims.ignored", title=_title(pod, container), why=problem)
        return variables

    def _decide(self, key: str) -> None:
        """Move a candidate to the table, or have it placed, as far as is known."""
        one, book = self._candidates[key], self._book
        answer = book.of(one.pod, one.uid) if book is not None else None
        if answer is not None:
            found = confirm(one.variables, one.name, answer, self.drivers)
            # One that is not confirmed says that the pod has set some itself.
            if len(found) == len(one.variables):
                container = ClaimedContainer(
                    key,
                    one.sandbox,
                    one.uid,
                    one.title,
                    tuple(variable.uid for variable, _ in found),
                    CpuSet.union(variable.cpus for variable, _ in found),
                )
                del self._candidates[key]
                self._put(self.table.with_container(container, found))
                log.info(
                    "claims.respected",
                    container=key,
                    title=container.title,
                    cpus=str(container.cpus),
                    claims=[device.claim for _, device in found],
                )
                return
        elif book is not None and book.awaits(one.pod, one.uid):
            return
        if not one.is_placed:
            self._candidates[key] = msgspec.structs.replace(one, waiting=None)
            why = _UNBACKED if answer is not None else "the kubelet has not answered"
            log.warning("claims.ignored", title=one.title, why=why)

    def _put(self, table: ClaimTable) -> None:
        if table is not self.table:
            self.table = table
            self.changed.set()


def name_of(pod: Pod) -> PodName:
    """Return the name by which the kubelet knows a pod."""
    return PodName(pod.namespace, pod.name)


def uid_of(pod: Pod) -> str:
    """Return the UID of a pod, or the id of the sandbox of one without."""
    return pod.uid or pod.id


def _name(container: Container) -> str:
    return container.name or container.labels.get(KUBELET_NAME, "")


def _title(pod: Pod, container: Container) -> str:
    return (
        f"{pod.namespace or '?'}/{pod.name or '?'}/{_name(container) or container.id}"
    )
