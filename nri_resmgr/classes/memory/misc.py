"""Limits of the misc controller's resources: SGX memory, SEV and TDX keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nri_resmgr.classes.memory.errors import BadMemoryAnnotation, UnknownMiscResource
from nri_resmgr.classes.unified import Files
from nri_resmgr.values import BadQuantity, parse_bytes
from nri_resmgr.values.annotations import Annotation, narrowest

EPC_KEY: Final = "epc-limit.nri.io"
"""Annotation that limits SGX's protected memory, in bytes; the narrowest scope applies:
``/container.NAME``, ``/pod``, no suffix."""

MISC_KEY: Final = "misc-limit.resource-policy.nri.io"
"""Annotation that limits any resources, in the same scopes: ``sev_es 4, tdx 2``."""

MISC_FILE: Final = "misc.max"

_EPC: Final = "sgx_epc"
_NO_LIMIT: Final = "max"
_ONE: Final = re.compile(r"([a-z][a-z0-9_]*)[ =]+(\S+)", re.ASCII)


def misc_limits(annotations: Mapping[str, str], container: str) -> dict[str, str]:
    """Read the limits that a pod's annotations set for one of its containers.

    Amounts are Kubernetes quantities or ``max``. An empty value cancels the request of
    a wider scope. For SGX, ``epc-limit`` overrides the other annotation.

    Returns:
        The text of each limit by the kernel's name of the resource, sorted by name.

    Raises:
        BadMemoryAnnotation: A value is no list of limits.

    Source:
        nri-plugins, ``cmd/plugins/sgx-epc``. Linux, cgroup-v2.rst, "Misc".
    """
    found: dict[str, str] = {}
    if annotation := narrowest(annotations, MISC_KEY, container):
        for item in filter(None, (one.strip() for one in annotation.value.split(","))):
            match = _ONE.fullmatch(item)
            if match is None or match[1] in found:
                why = "is not a list of limits, each resource once: sev_es 4, tdx 2"
                raise BadMemoryAnnotation(annotation.key, annotation.value, why)
            found[match[1]] = _amount(match[2], annotation)
    epc = narrowest(annotations, EPC_KEY, container)
    if epc and epc.value.strip():
        found[_EPC] = _amount(epc.value.strip(), epc)
    return dict(sorted(found.items()))


def read_capacity(text: str | None) -> tuple[str, ...]:
    r"""Read the resources in ``misc.capacity`` of the root cgroup; None is no file.

    >>> read_capacity("sgx_epc 98566144\nsev 10")
    ('sgx_epc', 'sev')
    """
    return tuple(line.split()[0] for line in (text or "").splitlines() if line.strip())


def misc_files(limits: Mapping[str, str], known: tuple[str, ...], title: str) -> Files:
    """Return limits as lines of ``misc.max``, for `as_unified`.

    Raises:
        UnknownMiscResource: The kernel does not count a resource. It would refuse the
            limit, and then the runtime the container.
    """
    for name in limits:
        if name not in known:
            raise UnknownMiscResource(title, name, known)
    lines = tuple(f"{name} {amount}" for name, amount in limits.items())
    return {MISC_FILE: lines} if lines else {}


def _amount(text: str, annotation: Annotation) -> str:
    if text == _NO_LIMIT:
        return text
    try:
        return str(parse_bytes(text))
    except BadQuantity as error:
        why = f"is no limit: {error}; expected a quantity or max"
        raise BadMemoryAnnotation(annotation.key, annotation.value, why) from None
