"""Extended resources that a node offers, and the environment that counts a container's.

Pure, and without grpclib: a creation reads these variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

VARIABLE_PREFIX: Final = "NRI_RESMGR_DEVICES_"
"""Of the variables that a container has for its devices, one for each resource."""

_MOST: Final = 1 << 16
_OTHER: Final = re.compile(r"[^A-Za-z0-9]")


class Offer(msgspec.Struct, frozen=True):
    """An extended resource of this node.

    Attributes:
        name: As in requests of containers: ``domain/name``.
        capacity: The most that the node ever grants.
        value: The number that it can grant now, with what has been granted to those
            that requested it; at most the capacity.
        count_variable: A further variable that gets the number of a container's
            devices; empty for none.
    """

    name: str
    capacity: int
    value: int
    count_variable: str = ""

    def variables(self, count: int) -> dict[str, str]:
        """Return the environment of a container with *count* devices.

        >>> Offer("example.com/cpus", 4, 4).variables(2)
        {'NRI_RESMGR_DEVICES_EXAMPLE_COM_CPUS': 'example.com/cpus=2'}
        """
        key = VARIABLE_PREFIX + _OTHER.sub("_", self.name).upper()
        found = {key: f"{self.name}={count}"}
        if self.count_variable:
            found[self.count_variable] = str(count)
        return found


def read_devices(env: Sequence[str]) -> dict[str, int]:
    """Return the numbers of devices in a container's environment, by resource.

    >>> read_devices(["A=b", "NRI_RESMGR_DEVICES_EXAMPLE_COM_CPUS=example.com/cpus=2"])
    {'example.com/cpus': 2}
    """
    if VARIABLE_PREFIX not in "\n".join(env):  # as in most containers
        return {}
    return dict(_devices(env))


def _devices(env: Sequence[str]) -> Iterator[tuple[str, int]]:
    for entry in env:
        if entry.startswith(VARIABLE_PREFIX):
            name, _, count = entry.partition("=")[2].rpartition("=")
            # A pod may write anything.
            is_number = (
                count.isascii() and count.isdecimal() and len(count) < len(str(_MOST))
            )
            if "/" in name and is_number and int(count):
                yield name, int(count)
