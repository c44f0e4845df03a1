"""Reads Kubernetes' ResourceRequirements from parsed JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_HUGEPAGES: Final = "hugepages-"

_SHOWN: Final = 40  # characters of a bad quantity


@dataclass(eq=False)
class Misplaced(InputError):
    """A part of the JSON has the wrong type or value.

    Attributes:
        at: Its place, with dots.
        why: What was expected.
    """

    at: str
    why: str

    def __str__(self) -> str:
        return f"{self.at}: {self.why}"


def requests_of(content: object, at: str) -> Requests:
    """Read the requests of a container, or of a pod.

    A missing request is equal to the limit, as in Kubernetes.

    Args:
        content: ``{"requests": {...}, "limits": {...}}``; either may be missing, and
            other keys are ignored.
        at: Its place in the document.

    Raises:
        Misplaced: It is something else, or an amount is not a quantity.
    """
    fields = mapping(content, at)
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
        source=RequestOrigin.ANNOTATION,
    )


def mapping(content: object, at: str) -> Mapping[str, object]:
    """Return *content* as a mapping; null is an empty one.

    Raises:
        Misplaced: It is something else.
    """
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Misplaced(at, "expected an object")
    return content


def _amounts(content: object, at: str) -> dict[str, int]:
    return {
        name: _amount(name, text, f"{at}.{name}")
        for name, text in mapping(content, at).items()
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
