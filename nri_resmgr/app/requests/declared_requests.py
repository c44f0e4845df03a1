"""The requests of a pod's containers, known before the containers exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.values import MilliCpus

LONGEST_REQUESTS: Final = 32 << 10
"""Characters: enough for 100 containers, which take a few milliseconds to read."""

_NONE: Final[Mapping[str, Requests]] = {}


class DeclaredRequests(msgspec.Struct, frozen=True):
    """The requests that a pod declares, by the names of its containers.

    Attributes:
        containers: Of the regular containers, which run side by side.
        init: Of the init containers, including sidecars.
        sidecars: Names in *init* of those that keep running.
        pod: Of the pod as a whole; None where it has none.
        resizing: Of containers that are being resized, what they may have as well,
            until the runtime has all of the new amounts.
    """

    containers: Mapping[str, Requests] = _NONE
    init: Mapping[str, Requests] = _NONE
    sidecars: frozenset[str] = frozenset()
    pod: Requests | None = None
    resizing: Mapping[str, tuple[Requests, ...]] = {}

    def claims(self, name: str) -> tuple[Requests, ...]:
        """Return what a container may ask for, the most likely first."""
        first = self.of(name)
        return () if first is None else (first, *self.resizing.get(name, ()))

    def of(self, name: str) -> Requests | None:
        """Return the requests of a container; None for an unknown one."""
        return self.containers.get(name) or self.init.get(name)

    def has_own_oom_score(self, name: str) -> bool:
        """Return whether the OOM score depends on the container's own request only."""
        return self.pod is None and name not in self.init

    @property
    def names(self) -> frozenset[str]:
        """The names of all containers."""
        return frozenset((*self.init, *self.containers))

    @property
    def lasting(self) -> dict[str, Requests]:
        """Requests of sidecars and regular containers, which run at the same time."""
        stay = {name: one for name, one in self.init.items() if name in self.sidecars}
        return {**stay, **self.containers}

    def fits_shares(self, shares: int) -> bool:
        """Return whether the kubelet can have computed *shares* from these requests.

        Sources may not know which init containers are sidecars: so anything between
        none and all of them is accepted.
        """
        if self.pod is not None and self.pod.cpu:
            return shares == shares_of(self.pod.cpu)
        init = [one.cpu for one in self.init.values()]
        regular = sum(one.cpu for one in self.containers.values())
        least = MilliCpus(max([regular, *init]))
        most = MilliCpus(regular + sum(init))
        return shares_of(least) <= shares <= shares_of(most)


NOTHING_DECLARED: Final = DeclaredRequests()
"""Of a pod that no source knows."""
