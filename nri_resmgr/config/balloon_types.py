"""The balloon types of a document."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import IrqRule
from nri_resmgr.values import CpuSet

RESERVED: Final = "reserved"
"""The built-in type of the node's own containers."""


class ExpressionConfig(msgspec.Struct, frozen=True):
    """A question about containers, as it is written.

    Attributes:
        path: Where it is written, for those who judge it.
    """

    key: str
    operator: str
    values: tuple[str, ...]
    path: str


class BalloonTypeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``balloonTypes``; None is "as the policy, or the CRD, says".

    Attributes:
        path: Where it is written.
        cpus: The CPUs of each instance, where they are said.
        max_cpus: 0 for no limit, below 0 for no CPUs at all.
        max_balloons: 0 for no limit.
    """

    path: str
    name: str
    components: tuple[str, ...] = ()
    balance_components: bool = False
    namespaces: tuple[str, ...] = ()
    expressions: tuple[ExpressionConfig, ...] = ()
    group_by: str = ""
    cpus: tuple[CpuSet, ...] = ()
    min_cpus: int = 0
    max_cpus: int = 0
    min_balloons: int = 0
    max_balloons: int = 0
    spread_pods: bool = False
    per_namespace: bool = False
    prefer_new: bool = False
    share_idle: str = ""
    close_to: tuple[str, ...] = ()
    far_from: tuple[str, ...] = ()
    prefer_isolated: bool = False
    core_type: str = ""
    hide_hyperthreads: bool = False
    topology_balancing: bool | None = None
    spread_on_cores: bool | None = None
    priority: str = "high"
    loads: tuple[str, ...] = ()
    memory_types: tuple[str, ...] = ()
    pin_memory: bool | None = None
    scheduling_class: str = ""
    cpu_class: str = ""
    interrupts: IrqRule | None = None
    rdt_class: str = ""
    blockio_class: str = ""
