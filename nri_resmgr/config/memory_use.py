"""The parts of a document that are about memory classes and limits of resources."""

from __future__ import annotations

from typing import Any, Final

from nri_resmgr.config.table import Table

_QOS: Final = "memoryQos"
_POLICY: Final = "memoryPolicy"
_MISC: Final = "miscLimits"


def read_memory_use(spec: Table) -> dict[str, Any]:
    """Read them into fields of `PolicyConfig`.

    Raises:
        BadSetting: The first mistake.
    """
    found: dict[str, Any] = {"misc_limits": spec.flag(_MISC, default=True)}
    # Few documents have any of these.
    if _QOS in spec.rows:
        from nri_resmgr.config.memory_classes import read_memory_qos

        found["memory_qos"] = read_memory_qos(spec.rows[_QOS], spec.at(_QOS))
    if _POLICY in spec.rows:
        from nri_resmgr.config.memory_classes import read_numa_policies

        found["memory_policy"] = read_numa_policies(
            spec.rows[_POLICY], spec.at(_POLICY)
        )
    return found


def ignored_of_memory(spec: Table) -> tuple[str, ...]:
    """Give the paths of what has no effect, of a spec that was read before."""
    policies = read_memory_use(spec).get("memory_policy")
    return policies.ignored if policies else ()
