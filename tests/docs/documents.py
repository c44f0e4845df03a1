"""Documents that have the readers of all options run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXAMPLE: Final = "example"
"""What is defined in them, for options that name it."""

_SCHEDULING: Final = {"schedulingClasses": [{"name": EXAMPLE}], "schedulingBy": "auto"}
_CPU_CLASSES: Final = {"cpuClasses": [{"name": EXAMPLE}]}
_COMMON: Final[Mapping[str, Any]] = {
    "control": {"rdt": {"enable": False}, "blockio": {"enable": False}},
    "memoryQos": {"classes": []},
    "memoryPolicy": {"classes": []},
}

EVERYTHING: Final[Mapping[str, object]] = {
    "StaticPolicy": {**_COMMON},
    "TopologyAwarePolicy": {
        **_COMMON,
        **_SCHEDULING,
        **_CPU_CLASSES,
        "sharedPoolCPUClass": EXAMPLE,
        "reservedPoolCPUClass": EXAMPLE,
        "defaultExclusiveCPUClass": EXAMPLE,
        "controllableInterrupts": ["*"],
    },
    "BalloonsPolicy": {
        **_COMMON,
        **_SCHEDULING,
        **_CPU_CLASSES,
        "controllableInterrupts": ["*"],
        "loadClasses": [{"name": EXAMPLE, "level": "core"}],
        "balloonTypes": [
            {
                "name": EXAMPLE,
                "pinMemory": True,
                "allocatorTopologyBalancing": True,
                "preferSpreadOnPhysicalCores": True,
                "schedulingClass": EXAMPLE,
                "cpuClass": EXAMPLE,
                "irqClaim": [],
                "irqMode": "sink",
            }
        ],
    },
}
"""By kind: each reader that only some documents pay for has something to read."""

EMPTY: Final[Mapping[str, object]] = {
    "StaticPolicy": {},
    "TopologyAwarePolicy": {},
    "BalloonsPolicy": {"balloonTypes": [{"name": EXAMPLE}]},
}
"""By kind: as little as can be, so that defaults show."""
