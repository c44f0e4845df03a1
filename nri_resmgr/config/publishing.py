"""Reads ``publish``: extended resources of the node, and a file of its features."""

from __future__ import annotations

import re
from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import PUBLISH, PublishUse
from nri_resmgr.config.table import Table

_BY: Final = ("device-plugin", "node-status")
_CPUS: Final = "exclusiveCPUs"
_RDT: Final = "rdtClasses"
_FEATURES: Final = "nodeFeatures"
_CONTAINERS: Final = "containers"

# More than a node has.
_MOST: Final = 1 << 16

# What follows the domain, as Kubernetes has it.
_LONGEST: Final = 63
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def read_publish(spec: Table, no_cpus: str) -> PublishUse:
    """Read ``publish`` of a document that has it.

    Args:
        spec: Of the document.
        no_cpus: Why exclusive CPUs cannot be counted; empty if they can.
    """
    table = spec.table(PUBLISH, "by", _CPUS, _RDT, _FEATURES)
    exclusive = table.flag(_CPUS)
    if exclusive and no_cpus:
        raise BadSetting(table.at(_CPUS), no_cpus)
    classes: dict[str, int] = {}
    for name, row in table.named(_RDT, _CONTAINERS):
        check_name(row.at("name"), name)
        row.require(_CONTAINERS, "the most containers of the class")
        classes[name] = row.number(_CONTAINERS, 1, _MOST, 1)
    return PublishUse(
        by=table.choice("by", _BY, PublishUse().by),
        exclusive_cpus=exclusive,
        rdt_classes=classes,
        node_features=table.flag(_FEATURES),
    )


def check_name(path: str, name: str) -> None:
    """Raise `BadSetting` if a name cannot be that of an extended resource."""
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        why = (
            f"{name!r} cannot be the name of an extended resource, expected letters, "
            f"digits, - _ and ., {_LONGEST} at most"
        )
        raise BadSetting(path, why)
