"""The table of annotation keys: reader, field, and whether errors refuse containers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from nri_resmgr.app.annotations.values import (
    read_cold_start,
    read_exact_flag,
    read_flag,
    read_hints,
    read_interrupts,
    read_kinds,
    read_level,
    read_name,
    read_path_rule,
    read_priority,
    read_sources,
)
from nri_resmgr.classes.isolation.values import (
    read_disabled,
    read_enabled,
    read_governor,
    read_irq_balancing,
    read_wake_latency,
)
from nri_resmgr.values import parse_bytes


class KeyTarget(enum.Enum):
    """The part of a `Reading` that an annotation sets.

    A `CLASS` is a preference that records its key and scope. An `ISOLATION` is a part
    of an `IsolationRequest`; its mistakes only matter where the configuration enables
    isolation annotations.
    """

    PREFERENCE = enum.auto()
    CLASS = enum.auto()
    ISOLATION = enum.auto()
    HINTS = enum.auto()


class Key(msgspec.Struct, frozen=True):
    """The reader of an annotation.

    Attributes:
        read: Parses the value; raises `InputError` for what it does not accept.
        field: Of `Preferences`, `IsolationRequest` or `HintOptions`, by *target*.
        strict: Whether a container is refused rather than placed without it.
        testing: Whether it is accepted in tests only.
    """

    read: Callable[[str], object]
    field: str = ""
    target: KeyTarget = KeyTarget.PREFERENCE
    strict: bool = False
    testing: bool = False


def _isolation(read: Callable[[str], object], field: str) -> Key:
    return Key(read, field, KeyTarget.ISOLATION, strict=True)


# Strict keys are requirements: a container placed without one would silently run where
# it must not.
KEYS: Final[Mapping[str, Key]] = {
    "prefer-reserved-cpus": Key(read_flag, "reserved"),
    "prefer-shared-cpus": Key(read_flag, "shared"),
    "prefer-isolated-cpus": Key(read_flag, "isolated"),
    "require-isolated-cpus": Key(read_flag, "require_isolated", strict=True),
    "prefer-cpu-priority": Key(read_priority, "cpu_priority"),
    "hide-hyperthreads": Key(read_flag, "hide_hyperthreads"),
    "pick-resources-by-hints": Key(read_flag, "pick_by_hints"),
    "memory-type": Key(read_kinds, "memory_kinds"),
    "cold-start": Key(read_cold_start, "cold_start"),
    "unlimited-burstable": Key(read_level, "unlimited_burstable"),
    "scheduling-class": Key(read_name, "scheduling_class"),
    "balloon.balloons": Key(read_name, "balloon", strict=True),
    "pool.podpools": Key(read_name, "pod_pool", strict=True),
    "dynamic-pool.dynamic-pools": Key(read_name, "dynamic_pool", strict=True),
    "cpu.preserve": Key(read_exact_flag, "preserve_cpus", strict=True),
    "memory.preserve": Key(read_exact_flag, "preserve_memory", strict=True),
    "strict.topologyhints": Key(read_flag, "strict_hints", strict=True),
    "topologyhints": Key(read_sources, "sources", KeyTarget.HINTS),
    "deny.topologyhints": Key(read_path_rule, "deny", KeyTarget.HINTS),
    "allow.topologyhints": Key(read_path_rule, "allow", KeyTarget.HINTS),
    "test.topologyhints": Key(read_hints, "given", KeyTarget.HINTS, testing=True),
    "cpu-class": Key(read_name, "cpu_class", KeyTarget.CLASS, strict=True),
    "irq-affinity": Key(read_interrupts, "irq", KeyTarget.CLASS, strict=True),
    "rdtclass": Key(read_name, "rdt_class", KeyTarget.CLASS, strict=True),
    "blockioclass": Key(read_name, "blockio_class", KeyTarget.CLASS, strict=True),
    "cpu-load-balancing.crio.io": _isolation(read_disabled, "unbalanced"),
    "cpu-quota.crio.io": _isolation(read_disabled, "unlimited"),
    "irq-load-balancing.crio.io": _isolation(read_irq_balancing, "irq"),
    "cpu-c-states.crio.io": _isolation(read_wake_latency, "wake_latency"),
    "cpu-freq-governor.crio.io": _isolation(read_governor, "governor"),
    "cpu-shared.crio.io": _isolation(read_enabled, "shared"),
    "toptierlimit": Key(parse_bytes, "top_tier_limit"),
}

# Set by the daemon itself, whatever the policy.
OF_EVERY_POLICY: Final = frozenset(("rdt_class", "blockio_class", "top_tier_limit"))

# With the sign of their weights. Their values name containers.
AFFINITY_KEYS: Final[Mapping[str, int]] = {"/affinity": 1, "/anti-affinity": -1}

# Read together with memory classes, in `nri_resmgr.app.classes`.
READ_ELSEWHERE: Final = ("misc-limit.resource-policy.nri.io",)

# Stems that end like this are keys of other policies.
OTHER_POLICIES: Final = (".balloons", ".dynamic-pools", ".static-pools")
