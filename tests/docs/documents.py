"""Documents that together exercise the readers of all options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXAMPLE: Final = "example"
"""What is defined in them, for options that name it."""

# Some keys are read differently by another policy.
_SCHEDULING: Final = {
    "schedulingClasses": [
        {
            "name": EXAMPLE,
            "policy": "fifo",
            "priority": 1,
            "ioClass": "rt",
            "ioPriority": 0,
        },
        {"name": f"{EXAMPLE} 2", "policy": "batch", "nice": 0},
        {
            "name": f"{EXAMPLE} 3",
            "policy": "deadline",
            "runtime": 1024,
            "deadline": 1024,
            "period": 1024,
        },
    ],
    "schedulingBy": "auto",
}
_CPU_CLASSES: Final = {"cpuClasses": [{"name": EXAMPLE}]}
_COMMON: Final[Mapping[str, Any]] = {
    "control": {"rdt": {"enable": True}, "blockio": {"enable": True, "classes": {}}},
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

_NOTHING: Final[Mapping[str, Any]] = {"control": {"rdt": {}, "blockio": {}}}
_UNSAID: Final = {"schedulingClasses": [{"name": EXAMPLE}]}

EMPTY: Final[Mapping[str, object]] = {
    "StaticPolicy": _NOTHING,
    "TopologyAwarePolicy": {**_NOTHING, **_UNSAID},
    "BalloonsPolicy": {
        **_NOTHING,
        **_UNSAID,
        "balloonTypes": [{"name": EXAMPLE}],
    },
}
"""By kind: as little as can be, so that defaults show."""
