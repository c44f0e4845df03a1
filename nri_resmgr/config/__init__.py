"""Reads configuration documents into frozen values; opens no file.

`parse_config` (`document`) parses YAML (`syntax`), finds the reader of its kind
(`kinds`) and calls it: `topology_aware`, `balloons` with `balloon_types`, or that of a
small policy: `static_policy` and `static_plus_policy`, `podpools`, `dynamic_pools`,
`static_pools`, `none_policy`. `pinned` has the options that several of these share. All
readers use `table`, which validates types and keys, and return a
`PolicyConfig`. Parts of a document have readers of their own: `cpus`, `cpu_classes`,
`memory_classes`, `rdt`, `blockio`, `scheduling`, `interrupts`; `foreign` validates what
has no effect here. `mistakes` finds all errors of a document instead of the first one.

Every reader raises `BadSetting` for the first error; its ``path`` is its place.
"""

from __future__ import annotations

from nri_resmgr.config.cpus import (
    AVAILABLE,
    RESERVED,
    AllBut,
    Amount,
    CpuChoice,
    KnownCpus,
    Listed,
    OfCgroup,
    absent_cpus,
    fit_cpus,
)
from nri_resmgr.config.document import API_VERSION, parse_config
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.static_plus_policy import StaticPlusPolicyConfig
from nri_resmgr.config.static_policy import StaticPolicyConfig
from nri_resmgr.config.topology_aware import TopologyAwareConfig

__all__ = [
    "API_VERSION",
    "AVAILABLE",
    "RESERVED",
    "AllBut",
    "Amount",
    "BadSetting",
    "BadSyntax",
    "CpuChoice",
    "KnownCpus",
    "Listed",
    "OfCgroup",
    "PolicyConfig",
    "StaticPlusPolicyConfig",
    "StaticPolicyConfig",
    "TopologyAwareConfig",
    "absent_cpus",
    "fit_cpus",
    "parse_config",
]
