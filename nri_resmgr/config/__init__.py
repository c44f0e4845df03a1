"""Reads configuration documents into frozen values; opens no file.

`parse_config` (`document`) parses YAML (`syntax`), finds the reader of its kind
(`kinds`) and calls it: `static_policy`, `topology_aware` or `balloons` with
`balloon_types`. All readers use `table`, which validates types and keys, and return a
`PolicyConfig`. Parts of a document have readers of their own: `cpus`, `cpu_classes`,
`memory_classes`, `rdt`, `blockio`, `scheduling`, `interrupts`; `foreign` validates what
has no effect here. `mistakes` finds all errors of a document instead of the first one.
"""

from __future__ import annotations

from nri_resmgr.config.cpus import (
    AVAILABLE,
    RESERVED,
    AllBut,
    Amount,
    CpuChoice,
    FittingCpus,
    KnownCpus,
    Listed,
    OfCgroup,
    fit_cpus,
)
from nri_resmgr.config.document import API_VERSION, parse_config
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.policy_config import PolicyConfig
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
    "FittingCpus",
    "KnownCpus",
    "Listed",
    "OfCgroup",
    "PolicyConfig",
    "StaticPolicyConfig",
    "TopologyAwareConfig",
    "fit_cpus",
    "parse_config",
]
