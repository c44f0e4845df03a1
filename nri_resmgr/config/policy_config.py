"""What documents of all kinds of policies have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from nri_resmgr.config.cpu_class_use import CpuClassUse

MEMORY_KEYS: Final = ("memoryQos", "memoryPolicy", "miscLimits")
"""Of documents of all kinds; `nri_resmgr.config.memory_use` reads them."""


class PolicyConfig(msgspec.Struct, frozen=True):
    """The spec of a document of any kind.

    Attributes:
        kind: As in the document.
        not_in_force: Paths of what was read, found right, and has no effect.
        doubts: Paths of what is right and hardly meant, each with the reason.
        interrupts: Patterns of those that may be moved.
        cpu_classes: What CPUs are set to; None where they are left alone.
        rdt: The `RdtUse`; its class is imported late. None where it is off.
        blockio: The `BlockIoControl`, likewise.
        memory_qos: The `MemoryQosConfig`, likewise. None where its annotations are
            not for us.
        memory_policy: The `NumaPolicyConfig`, likewise.
        scheduling_by: Who sets scheduling classes: ``runtime``, ``host`` or ``auto``,
            which is the host where the runtime cannot.
        misc_limits: Whether annotations that limit misc resources are for us.
        isolation: Whether CRI-O's isolation annotations are for us.
    """

    kind: ClassVar[str] = ""

    not_in_force: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    interrupts: tuple[str, ...] = ("*",)
    cpu_classes: CpuClassUse | None = None
    rdt: Any = None
    blockio: Any = None
    memory_qos: Any = None
    memory_policy: Any = None
    misc_limits: bool = True
    scheduling_by: str = "auto"
    isolation: bool = False
