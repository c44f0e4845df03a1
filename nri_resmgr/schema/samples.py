"""Documents from which readers are noted: for each kind a full and a minimal one.

A full one has each key that its reader only looks at where it is present, such as those
of sections with a reader of their own; keys that are always read need not be here. The
minimal one shows defaults. A test lists the keys that no sample reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nri_resmgr.schema.notes import EXAMPLE

_ANOTHER: Final = f"{EXAMPLE} 2"
_THIRD: Final = f"{EXAMPLE} 3"

_OF_ALL: Final[Mapping[str, Any]] = {
    "control": {
        "rdt": {
            "enable": True,
            "partitions": {
                EXAMPLE: {
                    "l2Allocation": "100%",
                    "l3Allocation": "100%",
                    "mbAllocation": ["100%"],
                    "classes": {
                        EXAMPLE: {
                            "l2Allocation": "100%",
                            "l3Allocation": "100%",
                            "mbAllocation": ["100%"],
                        }
                    },
                }
            },
            "monitoring": {"labelSelector": {EXAMPLE: ""}},
        },
        "blockio": {"enable": True, "classes": {EXAMPLE: [{}]}},
    },
    "memoryQos": {"classes": [{"name": EXAMPLE}]},
    "memoryPolicy": {
        "classes": [{"name": EXAMPLE, "policy": {"mode": "MPOL_DEFAULT"}}]
    },
    "agent": {},
    "allowLoss": False,
    "log": {},
    "publish": {"rdtClasses": [{"name": EXAMPLE, "containers": 1}]},
    "instrumentation": {"metrics": {"enabled": [], "polled": []}},
}
_SCHEDULING: Final = {
    "schedulingClasses": [
        {"name": EXAMPLE, "policy": "fifo", "priority": 1, "ioClass": "rt"},
        {"name": _ANOTHER, "policy": "batch"},
        {
            "name": _THIRD,
            "policy": "deadline",
            "runtime": 1024,
            "deadline": 1024,
            "period": 1024,
        },
        {"name": f"{EXAMPLE} 4"},
    ],
}
_BY_CLASS: Final = {
    "namespaceSchedulingClasses": {EXAMPLE: EXAMPLE},
    "podQoSSchedulingClasses": {"burstable": EXAMPLE},
}
_CPU_CLASSES: Final[Mapping[str, Any]] = {
    "cpuClasses": [
        {"name": EXAMPLE, "energyPerformancePreference": 0, "disabledCstates": []},
        {"name": _ANOTHER, "sstClosID": 0},
    ]
}
_OLD_CPU_CLASSES: Final = {
    "cpu": {
        "classes": {EXAMPLE: {"energyPerformancePreference": 0, "disabledCstates": []}}
    }
}
_WITH_OLD: Final = {
    **_OF_ALL,
    **_CPU_CLASSES,
    "control": {**_OF_ALL["control"], **_OLD_CPU_CLASSES},
}
_SERVICES: Final[Mapping[str, Any]] = {"dra": {}}

FULL: Final[Mapping[str, Mapping[str, object]]] = {
    "NonePolicy": {**_OF_ALL, **_SCHEDULING, **_BY_CLASS},
    "StaticPolicy": _OF_ALL,
    "StaticPlusPolicy": _OF_ALL,
    "DynamicPoolsPolicy": {
        **_WITH_OLD,
        "rebalance": {},
        "pools": [{"name": EXAMPLE, "cpuClass": EXAMPLE}],
    },
    "PodpoolsPolicy": {
        **_OF_ALL,
        "pools": [{"name": EXAMPLE, "cpu": 1}, {"name": "reserved"}],
    },
    "StaticPoolsPolicy": {
        **_OF_ALL,
        "pools": [{"name": EXAMPLE, "cpuLists": [{"cpus": "1", "socket": 0}]}],
    },
    "TopologyAwarePolicy": {
        **_WITH_OLD,
        **_SCHEDULING,
        **_BY_CLASS,
        **_SERVICES,
        "rebalance": {},
        "sharedPoolCPUClass": EXAMPLE,
        "reservedPoolCPUClass": EXAMPLE,
        "defaultExclusiveCPUClass": EXAMPLE,
        "controllableInterrupts": ["*"],
    },
    "BalloonsPolicy": {
        **_WITH_OLD,
        **_SCHEDULING,
        **_SERVICES,
        "idleCPUClass": EXAMPLE,
        "controllableInterrupts": ["*"],
        "preserve": {"matchExpressions": [{"operator": "Exists"}]},
        "loadClasses": [{"name": EXAMPLE, "level": "core"}],
        "balloonTypes": [
            {
                "name": EXAMPLE,
                "pinMemory": True,
                "allocatorTopologyBalancing": True,
                "preferSpreadOnPhysicalCores": True,
                "schedulingClass": EXAMPLE,
                "cpuClass": EXAMPLE,
                "irqMode": "sink",
                "matchExpressions": [{"operator": "Exists"}],
            },
            {"name": _ANOTHER, "components": [{"balloonType": EXAMPLE}]},
        ],
    },
}
"""Specs by kind."""

LEAST: Final[Mapping[str, object]] = {
    "control": {"rdt": {}, "blockio": {}},
    "log": {},
}
"""The spec of any kind: sections without content."""
