"""Annotations in the notation of CRI Resource Manager's older releases."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.annotations.documents import (
    read_document,
    read_mapping,
    read_text,
)
from nri_resmgr.app.annotations.keys import KEYS
from nri_resmgr.app.annotations.values import cold_start_of
from nri_resmgr.app.annotations.written import Written

_COLD_START: Final = "cold-start"


def read_deprecated(one: Written, container: str) -> object:
    """Read a value for all containers, or a YAML mapping of containers to values.

    Returns:
        What the key's reader returns; None where the mapping is silent about the
        container.

    Raises:
        InputError: The value is not what the key takes.

    Source:
        CRI Resource Manager, docs/policy/topology-aware.md.
    """
    if ":" not in one.value:
        return KEYS[one.stem].read(one.value)
    found = read_mapping(read_document(one.value), "$")
    path = f"$.{container}"
    if one.stem == _COLD_START:
        return _cold_start(found, container, path)
    if found.get(container) is None:
        return None
    return KEYS[one.stem].read(read_text(found[container], path))


def _cold_start(found: dict[str, object], container: str, path: str) -> int | None:
    if isinstance(found.get("duration"), str):  # else it is a container's name
        return cold_start_of(found, "$")
    if found.get(container) is None:
        return None
    return cold_start_of(found[container], path)
