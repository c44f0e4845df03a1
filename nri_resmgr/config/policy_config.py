"""What documents of all kinds of policies have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from nri_resmgr.config.table import Table

if TYPE_CHECKING:
    from nri_resmgr.classes.memory.qos import MemoryQosConfig
    from nri_resmgr.config.blockio import BlockIoControl
    from nri_resmgr.config.cpu_classes import CpuClassUse
    from nri_resmgr.config.memory_classes import NumaPolicyConfig
    from nri_resmgr.config.rdt import RdtUse

CONTROL: Final = "control"

_QOS: Final = "memoryQos"
_POLICY: Final = "memoryPolicy"
_MISC: Final = "miscLimits"

MEMORY_KEYS: Final = (_QOS, _POLICY, _MISC)
"""Of documents of all kinds; `read_memory_use` reads them."""


class PolicyConfig(msgspec.Struct, frozen=True):
    """The spec of a document of any kind.

    Attributes:
        kind: As in the document.
        ineffective: Paths of valid settings that have no effect.
        warnings: Paths of settings with an unexpected effect, each with the reason.
        interrupts: Patterns of those that may be moved.
        cpu_classes: CPU classes; None where CPU settings are not changed.
        rdt: RDT classes; None where they are off.
        blockio: Block I/O classes; None where they are off.
        memory_qos: Memory classes; None where their annotations are not read.
        memory_policy: Memory policies; None likewise.
        scheduling_by: What sets scheduling classes: ``runtime``, ``host`` or ``auto``,
            which is the host where the runtime does not support them.
        misc_limits: Whether annotations that limit misc resources are read.
        isolation: Whether CRI-O's isolation annotations are read.
    """

    kind: ClassVar[str] = ""

    ineffective: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    interrupts: tuple[str, ...] = ("*",)
    cpu_classes: CpuClassUse | None = None
    rdt: RdtUse | None = None
    blockio: BlockIoControl | None = None
    memory_qos: MemoryQosConfig | None = None
    memory_policy: NumaPolicyConfig | None = None
    misc_limits: bool = True
    scheduling_by: str = "auto"
    isolation: bool = False

    @property
    def interrupt_claims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Path and patterns of the interrupts that parts of the document claim."""
        return ()

    @property
    def listed_types(self) -> tuple[str, ...]:
        """Names of the types of pools that the document lists."""
        return ()


def read_control(spec: Table, *others: str) -> dict[str, Any]:
    """Read ``control`` into fields of `PolicyConfig`.

    Args:
        spec: Of a document of any kind.
        others: Keys that are read elsewhere.

    Raises:
        BadSetting: The first error.
    """
    found: dict[str, Any] = {}
    control = spec.table(CONTROL, "rdt", "blockio", *others)
    # Late imports: on the start path, and few documents have any of these.
    if "rdt" in control.rows:
        from nri_resmgr.config.rdt import read_rdt_use

        found["rdt"] = read_rdt_use(control)
    if "blockio" in control.rows:
        from nri_resmgr.config.blockio import read_block_io_control

        use = read_block_io_control(control)
        found["blockio"] = use if use.enabled else None
    return found


def read_memory_use(spec: Table) -> dict[str, Any]:
    """Read `MEMORY_KEYS` into fields of `PolicyConfig`.

    Raises:
        BadSetting: The first error.
    """
    found: dict[str, Any] = {"misc_limits": spec.flag(_MISC, default=True)}
    if not spec.rows.keys() & {_QOS, _POLICY}:
        return found
    # Late import, as above.
    from nri_resmgr.config.memory_classes import read_memory_qos, read_numa_policies

    if _QOS in spec.rows:
        found["memory_qos"] = read_memory_qos(spec.rows[_QOS], spec.at(_QOS))
    if _POLICY in spec.rows:
        path = spec.at(_POLICY)
        found["memory_policy"] = read_numa_policies(spec.rows[_POLICY], path)
    return found


def ineffective_of_memory(spec: Table) -> tuple[str, ...]:
    """Return the paths of memory settings without effect; *spec* is valid."""
    policies = read_memory_use(spec).get("memory_policy")
    return policies.ineffective if policies else ()
