"""Reads ResourceRequirements, as Kubernetes' objects have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.topology import HugePages
from nri_resmgr.values import (
    BadQuantity,
    Bytes,
    InputError,
    MilliCpus,
    parse_bytes,
    parse_cpus,
)

_SHOWN: Final = 40  # characters of a bad quantity

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_HUGEPAGES: Final = "hugepages-"


@dataclass(eq=False)
class Misplaced(InputError):
    """A part of a document has the wrong type or value.

    Attributes:
        at: Its place, with dots.
        why: What was expected.
    """

    at: str
    why: str

    def __str__(self) -> str:
        return f"{self.at}: {self.why}"


def read_requests(content: object, at: str, source: RequestOrigin) -> Requests:
    """Read the requests of a container, or of a pod.

    A missing request is equal to the limit, as in Kubernetes.

    Args:
        content: ``{"requests": {...}, "limits": {...}}``; either may be missing, and
            other keys are ignored.
        at: Its place in the document.
        source: The origin of the document.

    Raises:
        Misplaced: It is something else, or an amount is not a quantity.
    """
    fields = mapping_at(content, at)
    limits = _amounts(fields.get("limits"), f"{at}.limits")
    requests = limits | _amounts(fields.get("requests"), f"{at}.requests")
    limit, memory_limit = limits.get(_CPU), limits.get(_MEMORY)
    return Requests(
        cpu=MilliCpus(requests.get(_CPU, 0)),
        # A limit of zero means none, as for the kubelet.
        cpu_limit=MilliCpus(limit) if limit else None,
        memory=Bytes(requests.get(_MEMORY, 0)),
        memory_limit=Bytes(memory_limit) if memory_limit else None,
        hugepages=_hugepages(requests, f"{at}.limits"),
        # Only names of extended resources have a domain.
        extended={name: count for name, count in requests.items() if "/" in name},
        source=source,
    )


def within_pod(requests: Requests, pod: Requests | None) -> Requests:
    """Return the requests of a container in a pod with resources of its own."""
    # The kubelet gives a container without limits those of its pod, and one without a
    # CPU request its limit.
    if pod is None:
        return requests
    return msgspec.structs.replace(
        requests,
        cpu=requests.cpu or pod.cpu_limit or MilliCpus(0),
        cpu_limit=requests.cpu_limit or pod.cpu_limit,
        memory_limit=requests.memory_limit or pod.memory_limit,
    )


def mapping_at(content: object, at: str) -> Mapping[str, object]:
    """Return *content* as a mapping; null is an empty one.

    Raises:
        Misplaced: It is something else.
    """
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise Misplaced(at, "expected an object")
    return content


def _amounts(content: object, at: str) -> dict[str, int]:
    return {
        name: _amount(name, text, f"{at}.{name}")
        for name, text in mapping_at(content, at).items()
    }


def _amount(name: str, text: object, at: str) -> int:
    if not isinstance(text, str):
        raise Misplaced(at, 'expected a quantity, such as "500m" or "2Gi"')
    try:
        return parse_cpus(text) if name == _CPU else parse_bytes(text)
    except BadQuantity as error:
        found = f"{text[:_SHOWN]!r}: {error.why}"
        raise Misplaced(at, f'{found}; expected one such as "500m" or "2Gi"') from None


def _hugepages(amounts: Mapping[str, int], at: str) -> tuple[HugePages, ...]:
    pages = []
    for name, amount in amounts.items():
        if not name.startswith(_HUGEPAGES) or not amount:
            continue
        try:
            size = parse_bytes(name.removeprefix(_HUGEPAGES))
        except BadQuantity as error:
            raise Misplaced(f"{at}.{name}", f"page size: {error.why}") from None
        if not size:
            raise Misplaced(f"{at}.{name}", "page size: zero")
        pages.append(HugePages(size, amount // size))
    return tuple(sorted(pages, key=lambda page: page.size))
