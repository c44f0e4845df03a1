"""The configuration of the podpools policy."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator
from typing import ClassVar, Final, Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.pinned import PINNED_FIELDS, PinnedConfig
from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PUBLISH,
    read_agent_use,
    read_control,
    read_memory_use,
    read_publish_use,
)
from nri_resmgr.config.table import Table, read_fields

_NO_CPUS: Final = "the containers of a pod share the CPUs of its pool"

DEFAULT: Final = "default"
"""The built-in pool of pods that name none."""

RESERVED: Final = "reserved"
"""The built-in pool of the node's own pods."""

_POOLS: Final = "pools"
_POOL: Final = ("cpu", "maxPods", "instances", "fillOrder")

_BALANCED: Final = "Balanced"
_PACKED: Final = "Packed"
_ORDERS: Final = (_BALANCED, _PACKED, "FirstFree")

_MOST: Final = 1 << 16
_NO_PODS: Final = -1

_INSTANCES: Final = re.compile(r"\s*(\d+)\s*(%|[cC][pP][uU][sS]?)?\s*", re.ASCII)
_EXAMPLES: Final = "a number, such as 2, '4 CPUs' or '50 %'"


class InstanceUnit(enum.Enum):
    """The unit of the amount of ``instances``."""

    INSTANCES = enum.auto()
    CPUS = enum.auto()
    PERCENT = enum.auto()
    """Of the CPUs that are left for pools."""


class PodpoolConfig(msgspec.Struct, frozen=True):
    """One entry of ``pools``.

    Attributes:
        path: Its place in the document.
        cpus: CPUs of each instance; 0 for the reserved pool, which has its own.
        max_pods: Of each instance; 0 for any number, below 0 for none.
        amount: How many instances there are, in *unit*.
        fill_order: ``Balanced``, ``Packed`` or ``FirstFree``.
    """

    path: str
    name: str
    cpus: int
    max_pods: int = 0
    amount: int = 1
    unit: InstanceUnit = InstanceUnit.INSTANCES
    fill_order: str = _BALANCED


class PodpoolsPolicyConfig(PinnedConfig, frozen=True):
    """A ``PodpoolsPolicy`` document; without pools all pods share all CPUs.

    Attributes:
        pools: In the order in which they get their CPUs.
    """

    kind: ClassVar[str] = "PodpoolsPolicy"

    pools: tuple[PodpoolConfig, ...] = ()

    @property
    def sizes(self) -> tuple[str, ...]:
        """Paths of what a machine can be too small for, pools among them."""
        return (*super().sizes, *(one.path for one in self.pools))

    def without_sizes(self, paths: Collection[str]) -> Self:
        """Leave out some of the `sizes`; pods of a pool that is left out share."""
        left = tuple(one for one in self.pools if one.path not in paths)
        return replace(super().without_sizes(paths), pools=left)


def read_podpools_policy(top: Table) -> PodpoolsPolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    spec = top.table(
        "spec", *PINNED_FIELDS, _POOLS, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH
    )
    return PodpoolsPolicyConfig(
        pools=tuple(_pools(spec)),
        **read_fields(spec, PINNED_FIELDS, PodpoolsPolicyConfig()),
        **read_control(spec),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec, no_cpus=_NO_CPUS),
    )


def _pools(spec: Table) -> Iterator[PodpoolConfig]:
    for name, row in spec.named(_POOLS, *_POOL):
        if name == RESERVED:
            _check_only(row, "maxPods", "it has the CPUs of reservedResources")
            max_pods = row.number("maxPods", _NO_PODS, _MOST, 0)
            yield PodpoolConfig(row.path, name, 0, max_pods)
        else:
            yield _pool(name, row)


def _pool(name: str, row: Table) -> PodpoolConfig:
    row.require("cpu", "the number of CPUs of each instance")
    text = row.amount("cpu") or ""
    if not text.isdigit() or not 0 < int(text) <= _MOST:
        raise BadSetting(row.at("cpu"), f"expected a whole number above 0, not {text}")
    amount, unit = _instances(row)
    if name == DEFAULT:
        _check_only(row, "cpu", "pods run here that find no room elsewhere")
    order = row.choice("fillOrder", _ORDERS, _BALANCED)
    max_pods = row.number("maxPods", _NO_PODS, _MOST, 0)
    if order == _PACKED and not max_pods and amount > 1:
        why = "with fillOrder Packed the first instance would get all pods"
        raise BadSetting(row.at("maxPods"), f"missing, expected a limit: {why}")
    return PodpoolConfig(row.path, name, int(text), max_pods, amount, unit, order)


def _instances(row: Table) -> tuple[int, InstanceUnit]:
    text = row.form("instances", _INSTANCES, _EXAMPLES)
    found = _INSTANCES.fullmatch(text)
    if found is None:
        return 1, InstanceUnit.INSTANCES
    if int(found[1]) > _MOST:
        why = f"expected {_EXAMPLES}, at most {_MOST}, not {text!r}"
        raise BadSetting(row.at("instances"), why)
    if found[2] == "%":
        return int(found[1]), InstanceUnit.PERCENT
    unit = InstanceUnit.CPUS if found[2] else InstanceUnit.INSTANCES
    return int(found[1]), unit


def _check_only(row: Table, allowed: str, why: str) -> None:
    """Check a built-in pool, of which one key can be set."""
    for key in _POOL:
        if key in row.rows and key != allowed:
            raise BadSetting(row.at(key), f"not for a built-in pool: {why}")
