"""The RDT and block I/O classes of containers that the policy has placed.

Apart from the setters, whose imports are heavy: status and metrics need only this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nri_resmgr.classes.choice import ClassChoice, choose
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy

if TYPE_CHECKING:  # heavy; few nodes have classes
    from nri_resmgr.config.blockio import BlockIoControl
    from nri_resmgr.config.rdt import RdtUse


def rdt_choice(
    spec: ContainerSpec,
    use: RdtUse,
    policy: ViewedPolicy[KnowsContainers],
    state: KnowsContainers,
) -> ClassChoice | None:
    """Return the RDT class of a container."""
    if not use.assigns:
        return None
    given = policy.classes_of(state, spec.id).rdt
    return choose(spec.preferences.rdt_class, given, spec.qos if use.by_qos else None)


def blockio_choice(
    spec: ContainerSpec,
    use: BlockIoControl,
    policy: ViewedPolicy[KnowsContainers],
    state: KnowsContainers,
) -> ClassChoice | None:
    """Return the block I/O class of a container."""
    given = policy.classes_of(state, spec.id).blockio
    qos = spec.qos if use.by_qos else None
    return choose(spec.preferences.blockio_class, given, qos)
