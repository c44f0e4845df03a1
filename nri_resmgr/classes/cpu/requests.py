"""Requests of containers about their exclusive CPUs, by CRI-O's annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.values import CpuSet, InputError

GOVERNOR_KEY: Final = "cpu-freq-governor.crio.io"
CSTATES_KEY: Final = "cpu-c-states.crio.io"

# In the kernel's form: no limit of the wake-up latency, and no latency at all.
_ANY, _NONE = "0", "n/a"

_LIMIT: Final = "max_latency:"
_MOST: Final = (1 << 31) - 1  # the kernel has 32 bits with a sign for it


@dataclass(eq=False)
class BadCpuClassRequest(InputError):
    """The value of an annotation about CPUs is invalid."""

    key: str
    text: str

    def __str__(self) -> str:
        known = f"enable, disable or {_LIMIT}MICROSECONDS"
        return f"{self.key}: expected {known}, not {self.text!r}"


class CpuClassRequest(msgspec.Struct, frozen=True):
    """What a container asks for its exclusive CPUs.

    Attributes:
        cpus: Its exclusive CPUs.
        governor: The scaling governor; empty for none.
        wake_latency: See `CpuClass.wake_latency`.
    """

    cpus: CpuSet
    governor: str = ""
    wake_latency: str = ""


def read_cpu_request(cpus: CpuSet, governor: str, cstates: str) -> CpuClassRequest:
    """Read CRI-O's annotations; empty text stands for no annotation.

    Args:
        cpus: Exclusive CPUs of the container.
        governor: Value of `GOVERNOR_KEY`.
        cstates: Value of `CSTATES_KEY`: ``enable`` all idle states, ``disable`` all but
            polling, or allow those from which a CPU wakes in ``max_latency:N``
            microseconds.

    Raises:
        BadCpuClassRequest: *cstates* is none of these.

    Source:
        CRI-O, high-performance hooks; Linux,
        Documentation/ABI/testing/sysfs-devices-power, pm_qos_resume_latency_us.

    >>> read_cpu_request(CpuSet.of(2), "", "max_latency:10").wake_latency
    '10'
    """
    return CpuClassRequest(cpus, governor, _latency(cstates) if cstates else "")


def with_requests(
    classes: Mapping[str, CpuClass],
    members: Mapping[str, CpuSet],
    requests: Iterable[CpuClassRequest],
) -> tuple[Mapping[str, CpuClass], Mapping[str, CpuSet]]:
    """Return classes and members with the requests of containers applied.

    The CPUs of a request get a class of their own: a copy of their class with the
    request in it. Its name, made of both, cannot occur in a document.

    Args:
        classes: Classes by name.
        members: Class to its CPUs.
        requests: Requests of containers, which share no CPU.
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


def _latency(text: str) -> str:
    number = text.removeprefix(_LIMIT)
    match text:
        case "enable":
            return _ANY
        case "disable":
            return _NONE
        case _ if number != text and number.isascii() and number.isdecimal():
            if (limit := int(number)) <= _MOST:
                # To the kernel 0 means no limit; in an annotation it means the lowest.
                return str(limit) if limit else _NONE
    raise BadCpuClassRequest(CSTATES_KEY, text)
