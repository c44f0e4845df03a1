"""Requests of containers about their exclusive CPUs, by CRI-O's annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.values import CpuSet


class CpuClassRequest(msgspec.Struct, frozen=True):
    """The class that a container requests for its exclusive CPUs.

    Attributes:
        wake_latency: See `CpuClass.wake_latency`.
    """

    cpus: CpuSet
    governor: str = ""
    wake_latency: str = ""


def with_requests(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    requests: Iterable[CpuClassRequest],
) -> tuple[Mapping[str, CpuClass], Mapping[str, CpuSet]]:
    """Return classes and members with the requests of containers applied.

    The CPUs of a request get a class of their own: a copy of their class with the
    request in it. Its name, made of both, cannot occur in a document.

    Requests share no CPU.
    """
    found, homes = dict(classes), dict(members)
    for request in requests:
        unclassed = request.cpus - CpuSet.union(members.values())
        for name, its in ({"": unclassed} | dict(members)).items():
            cpus = its & request.cpus
            if cpus and (request.governor or request.wake_latency):
                like = found.get(name, CpuClass(name=name))
                one = _with_request(like, request)
                found[one.name] = one
                homes[name] = homes.get(name, its) - cpus
                homes[one.name] = homes.get(one.name, CpuSet()) | cpus
    return found, {name: cpus for name, cpus in homes.items() if cpus}


def _with_request(like: CpuClass, request: CpuClassRequest) -> CpuClass:
    parts = [like.name, request.governor]
    parts += [f"wake {request.wake_latency}"] if request.wake_latency else []
    return msgspec.structs.replace(
        like,
        name=" + ".join(part for part in parts if part),
        governor=request.governor or like.governor,
        wake_latency=request.wake_latency or like.wake_latency,
    )
