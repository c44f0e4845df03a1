"""What documents of all kinds of policies have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen
class PolicyConfig(ByContent):
    """The spec of a document of any kind.

    Attributes:
        kind: As in the document.
        not_in_force: Paths of what was read, found right, and has no effect.
        doubts: Paths of what is right and hardly meant, each with the reason.
        interrupts: Patterns of those that may be moved.
        cpu_classes: What CPUs are set to; None where they are left alone.
        rdt: The `RdtUse`; its class is imported late. None where it is off.
        blockio: The `BlockIoControl`, likewise.
    """

    kind: ClassVar[str] = ""

    not_in_force: tuple[str, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    interrupts: tuple[str, ...] = ("*",)
    cpu_classes: CpuClassUse | None = None
    rdt: Any = None
    blockio: Any = None
