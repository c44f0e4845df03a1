"""One adjustment, for this node, as a value."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.affinity import Expression
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import predicate_of
from nri_resmgr.values import Bytes, MilliCpus


class Adjustment(msgspec.Struct, frozen=True):
    """Amounts and classes for the containers in its scope; None leaves their own.

    Attributes:
        scope: It applies to containers that match any of these.
        everywhere: Whether it applies to all containers.
        request: CPU request.
        limit: CPU limit.
        rdt_class: Class of cache and memory bandwidth.
        blockio_class: Class of block I/O.
        top_tier_limit: Soft limit of fast memory.
    """

    name: str
    scope: tuple[Expression, ...] = ()
    everywhere: bool = False
    request: MilliCpus | None = None
    limit: MilliCpus | None = None
    memory_request: Bytes | None = None
    memory_limit: Bytes | None = None
    rdt_class: str | None = None
    blockio_class: str | None = None
    top_tier_limit: Bytes | None = None

    @property
    def has_resources(self) -> bool:
        """True if it sets an amount of CPU or memory."""
        amounts = (self.request, self.limit, self.memory_request, self.memory_limit)
        return any(one is not None for one in amounts)

    @property
    def has_classes(self) -> bool:
        """Whether it names an RDT or block I/O class."""
        return self.rdt_class is not None or self.blockio_class is not None

    def covers(self, spec: ContainerSpec) -> bool:
        """Return whether a container is in its scope."""
        return self.everywhere or any(predicate_of(one)(spec) for one in self.scope)
