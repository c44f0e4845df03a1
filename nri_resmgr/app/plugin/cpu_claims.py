"""CPUs that drivers of other programs have given to claims of pods (DRA).

Such a driver hands its CPUs over by an environment variable, ``DRA_CPUSET_`` and the
claim's UID, which the pod could set as well. So it counts only where the kubelet names
the driver, the claim and its CDI device for that very container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from nri_resmgr.kubelet.pod_resources import Answer, ClaimedDevice
from nri_resmgr.values import CpuSet, ResmgrError, StoredValue

VARIABLE: Final = "DRA_CPUSET_"
"""The name of the environment variable, before the UID of the claim."""

DEFAULT_DRIVERS: Final = ("dra.cpu",)

# Of a container: a driver makes one for each claim.
_MOST: Final = 16
_LONGEST: Final = 4096  # characters of a list of CPUs
_KEPT: Final = _LONGEST + 512  # of an entry


class CpuClaim(StoredValue, frozen=True):
    """A claim, and the CPUs that are its own from its first container on.

    Attributes:
        uid: Of the ResourceClaim.
        name: ``namespace/name`` of it.
        pods: UIDs of the pods that use it. Its CPUs are taken until the last sandbox of
            these is removed: the driver frees them when the pod has ended, not when a
            container stops.
    """

    uid: str
    driver: str
    name: str
    cpus: CpuSet
    pods: frozenset[str]


class ClaimedContainer(StoredValue, frozen=True):
    """A container that has the CPUs of claims, and is not pinned.

    Attributes:
        pod: Id of the pod sandbox.
        claims: UIDs of its claims.
        cpus: Those of all of them.
    """

    id: str
    pod: str
    pod_uid: str
    title: str
    claims: tuple[str, ...]
    cpus: CpuSet


class Variable(msgspec.Struct, frozen=True):
    """A variable of a container: the UID of a claim, and the CPUs that it names."""

    uid: str
    cpus: CpuSet


def has_variables(env: Sequence[str]) -> bool:
    """Return whether a container has any variable of such a driver."""
    return any(one.startswith(VARIABLE) for one in env)


def variables_kept(env: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of such variables, as far as any reader looks at them."""
    found = (one[:_KEPT] for one in env if one.startswith(VARIABLE))
    return tuple(islice(found, _MOST + 1))


def variables_in(
    env: Sequence[str], online: CpuSet
) -> tuple[tuple[Variable, ...], str]:
    """Read the variables of a container.

    Args:
        env: Its environment.
        online: The CPUs of the machine.

    Returns:
        The valid ones, and a sentence on the first invalid one.
    """
    found: dict[str, Variable] = {}
    problem = ""
    for entry in variables_kept(env):
        name, _, text = entry.partition("=")
        uid = name.removeprefix(VARIABLE)
        if len(text) > _LONGEST:
            problem = problem or f"{name[:80]} is too long"
            continue
        try:
            cpus = CpuSet.parse(text)
        except ResmgrError as error:
            problem = problem or f"{name[:80]}: {error}"
            continue
        if not uid or not cpus:
            problem = problem or f"{name[:80]} names no CPU"
        elif cpus - online:
            problem = problem or f"{name[:80]}: CPU {cpus - online} is not online"
        elif uid in found and found[uid].cpus != cpus:
            problem = problem or f"{name[:80]} is set twice"
        else:
            found[uid] = Variable(uid, cpus)
    if len(found) > _MOST:
        return (), f"it has {len(found)} variables {VARIABLE}..., at most {_MOST} count"
    if problem:
        # Its other variables may be as wrong.
        return (), problem
    return tuple(found.values()), ""


def backing_of(
    variable: Variable, claimed: Iterable[ClaimedDevice], drivers: Sequence[str]
) -> ClaimedDevice | None:
    """Return the device of a container that confirms its variable."""
    device = f"claim-{variable.uid}"
    for one in claimed:
        if one.driver in drivers and any(
            cdi.rpartition("=")[2] == device for cdi in one.cdi
        ):
            return one
    return None


def confirm(
    variables: Sequence[Variable],
    name: str,
    answer: Answer,
    drivers: Sequence[str],
) -> tuple[tuple[Variable, ClaimedDevice], ...]:
    """Return the variables of a container that the kubelet confirms, with the devices.

    Args:
        variables: Of the container.
        name: The container.
        answer: Of the kubelet, about its pod.
        drivers: The names of drivers that count.
    """
    resources = answer.get(name)
    if resources is None:
        return ()
    found = ((one, backing_of(one, resources.claimed, drivers)) for one in variables)
    return tuple((one, device) for one, device in found if device is not None)


class ClaimTable(StoredValue, frozen=True):
    """The claims whose CPUs are taken, and the containers that have them.

    Attributes:
        claims: By UID.
        containers: By id.
    """

    claims: Mapping[str, CpuClaim] = {}
    containers: Mapping[str, ClaimedContainer] = {}

    @property
    def cpus(self) -> CpuSet:
        """The CPUs of all claims."""
        return CpuSet.union(one.cpus for one in self.claims.values())

    def with_container(
        self,
        container: ClaimedContainer,
        confirmed: Sequence[tuple[Variable, ClaimedDevice]],
    ) -> ClaimTable:
        """Add a container with the claims that the kubelet confirms for it."""
        claims = dict(self.claims)
        for variable, device in confirmed:
            known = claims.get(variable.uid)
            pods = known.pods if known else frozenset()
            claims[variable.uid] = CpuClaim(
                variable.uid,
                device.driver,
                device.claim,
                # A driver that has changed its mind gave the earlier ones back.
                variable.cpus,
                pods | {container.pod_uid},
            )
        return ClaimTable(claims, {**self.containers, container.id: container})

    def without_container(self, container: str) -> ClaimTable:
        """Drop a container; its claims keep their CPUs."""
        if container not in self.containers:
            return self
        left = {key: one for key, one in self.containers.items() if key != container}
        return ClaimTable(self.claims, left)

    def keep_only(self, pods: Iterable[str], containers: Iterable[str]) -> ClaimTable:
        """Drop claims that no present pod uses, and containers that are gone.

        Args:
            pods: UIDs of the pods that have a sandbox.
            containers: Ids of present containers.
        """
        there, ids = frozenset(pods), frozenset(containers)
        claims = {
            key: one if one.pods <= there else msgspec.structs.replace(one, pods=left)
            for key, one in self.claims.items()
            if (left := one.pods & there)
        }
        kept = {key: one for key, one in self.containers.items() if key in ids}
        if (claims, kept) == (self.claims, self.containers):
            return self
        return ClaimTable(claims, kept)

    def knows(self, container: str, variables: Sequence[Variable]) -> bool:
        """Return whether a container was confirmed earlier, with these variables.

        After a restart of this process, its containers need no second confirmation.
        """
        known = self.containers.get(container)
        cpus = CpuSet.union(one.cpus for one in variables)
        uids = {one.uid for one in variables}
        return known is not None and (set(known.claims), known.cpus) == (uids, cpus)
