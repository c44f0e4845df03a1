"""What all containers of a pod ask for, told before they exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.values import MilliCpus

_NONE: Final[Mapping[str, Requests]] = {}


class PodRequests(msgspec.Struct, frozen=True):
    """A pod's containers by name, as its author wrote them.

    Attributes:
        containers: Those that run side by side.
        init: Those that run before, sidecars among them.
        sidecars: Names in *init* of those that stay.
        pod: What the pod asks for as a whole; None where it does not.
    """

    containers: Mapping[str, Requests] = _NONE
    init: Mapping[str, Requests] = _NONE
    sidecars: frozenset[str] = frozenset()
    pod: Requests | None = None

    def of(self, name: str) -> Requests | None:
        """Return what a container asks for; None for one that is not here."""
        return self.containers.get(name) or self.init.get(name)

    def has_own_oom_score(self, name: str) -> bool:
        """Tell whether a container's memory request alone makes its OOM score."""
        return self.pod is None and name not in self.init

    @property
    def lasting(self) -> dict[str, Requests]:
        """Sidecars and containers: those that will run at the same time."""
        stay = {name: one for name, one in self.init.items() if name in self.sidecars}
        return {**stay, **self.containers}

    def fits_shares(self, shares: int) -> bool:
        """Tell whether the kubelet can have given the pod *shares* for all this.

        Which init containers are sidecars need not be known: at most all are, and
        at least none.
        """
        if self.pod is not None and self.pod.cpu:
            return shares == shares_of(self.pod.cpu)
        init = [one.cpu for one in self.init.values()]
        regular = sum(one.cpu for one in self.containers.values())
        least = MilliCpus(max([regular, *init]))
        most = MilliCpus(regular + sum(init))
        return shares_of(least) <= shares <= shares_of(most)
