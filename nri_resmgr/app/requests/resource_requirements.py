"""Kubernetes' ResourceRequirements, out of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
    """A part of the JSON is not what it should be.

    Attributes:
        at: Where, with dots.
        why: What was expected.
    """

    at: str
    why: str

    def __str__(self) -> str:
        return f"{self.at}: {self.why}"


def requests_of(content: object, at: str) -> Requests:
    """Read what one container, or a pod, asks for.

    A request that is not there is as large as the limit, as Kubernetes has it.

    Args:
        content: ``{"requests": {...}, "limits": {...}}``; either may be missing, and
            other keys say nothing about amounts.
        at: Where it was found.

    Raises:
        Misplaced: It is something else, or an amount is not a quantity.
    """
    fields = mapping(content, at)
    limits = _amounts(fields.get("limits"), f"{at}.limits")
    requests = limits | _amounts(fields.get("requests"), f"{at}.requests")
    limit, memory_limit = limits.get(_CPU), limits.get(_MEMORY)
    return Requests(
        cpu=MilliCpus(requests.get(_CPU, 0)),
        # Zero is no limit, as for the kubelet.
        cpu_limit=MilliCpus(limit) if limit else None,
        memory=Bytes(requests.get(_MEMORY, 0)),
        memory_limit=Bytes(memory_limit) if memory_limit else None,
        hugepages=_hugepages(requests, f"{at}.limits"),
        # Names of extended resources have a domain, those of Kubernetes' own none.
        extended={name: count for name, count in requests.items() if "/" in name},
        source=RequestOrigin.ANNOTATION,
    )


def mapping(content: object, at: str) -> Mapping[str, Any]:
    """Take *content* for an object, nothing for an empty one.

    Raises:
        Misplaced: It is neither.
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
