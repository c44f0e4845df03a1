"""Claims of other CPU drivers, and devices of the kubelet, in answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.app.plugin.claimed_containers import ClaimedContainers
from nri_resmgr.app.plugin.cpu_claims import ClaimedContainer
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.control.names import NamedContainer
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.values.documents import JsonObject


def claims_of(policy: NodePolicy) -> JsonObject:
    """Describe the claims whose CPUs are taken, and their containers."""
    claims = policy.claims
    return {
        "drivers": list(claims.drivers),
        "cpus": str(claims.taken),
        "conflict": claims.conflict,
        "waiting": list(claims.undecided),
        "claims": [
            {
                "uid": one.uid,
                "name": one.name,
                "driver": one.driver,
                "cpus": str(one.cpus),
                "pods": sorted(one.pods),
                "containers": sorted(
                    container.title
                    for container in claims.table.containers.values()
                    if one.uid in container.claims
                ),
            }
            for one in claims.table.claims.values()
        ],
    }


def named_claimed(claims: ClaimedContainers) -> list[NamedContainer]:
    """Name the containers that have claims, to find them by name."""
    found = []
    for one in claims.table.containers.values():
        named = NamedContainer.of_title(one.title, one.id)
        found.append(
            NamedContainer(
                named.namespace,
                named.pod,
                named.container,
                one.id,
                one.pod,
                one.pod_uid,
            )
        )
    return found


def explained_claims(
    claims: ClaimedContainers, found: Iterable[NamedContainer]
) -> Iterator[JsonObject]:
    """Yield the explanations of those that have claims."""
    table = claims.table
    for named in found:
        one = table.containers.get(named.id)
        if one is not None:
            yield {
                "title": one.title,
                "id": one.id,
                "cpus": str(one.cpus),
                "sentences": list(_sentences(one, claims)),
            }


def device_sentences(spec: ContainerSpec, policy: NodePolicy) -> Iterator[str]:
    """Yield where the devices of a container are, and whether its CPUs are there."""
    cpus = (policy.wanted(spec.id) or NO_PIN).cpus
    for hint in spec.hints:
        if hint.is_pod_resource:
            name = hint.provider.partition(":")[2]
            far = cpus - hint.cpus
            where = f"; of its CPUs, {far} are not" if far else ""
            yield f"device {name} is near CPUs {hint.cpus}, says the kubelet{where}"


def _sentences(one: ClaimedContainer, claims: ClaimedContainers) -> Iterator[str]:
    for uid in one.claims:
        if (claim := claims.table.claims.get(uid)) is not None:
            yield (
                f"the driver {claim.driver} gave it CPUs {claim.cpus}, "
                f"by the claim {claim.name}: it is left alone"
            )
    if claims.conflict:
        yield f"other containers may use these CPUs, too: {claims.conflict}"
    else:
        yield "no other container gets these CPUs until its pod is removed"
