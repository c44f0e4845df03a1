"""Reads configuration documents into frozen values; opens no file.

There is a reader for each built-in kind: `topology_aware`, `balloons` with
`balloon_types`, and those of small policies: `static_policy` and `static_plus_policy`,
`podpools`, `dynamic_pools`, `static_pools`, `none_policy`. `pinned` has the options
that several of these share. All readers use `table`, which validates types and keys,
and return a `PolicyConfig`. Parts of a document have readers of their own: `cpus`,
`cpu_classes`, `memory_classes`, `rdt`, `blockio`, `scheduling`, `interrupts`; `foreign`
validates what has no effect here.

`syntax` parses YAML. Which reader a document needs is known one layer above, by
`nri_resmgr.policies`. So `mistakes`, which finds all errors of a document instead of
the first one, and `migrate`, which converts others to ours, are given a `ReadDocument`.

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
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.policy_config import API_VERSION, PolicyConfig, ReadDocument
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
    "ReadDocument",
    "StaticPlusPolicyConfig",
    "StaticPolicyConfig",
    "TopologyAwareConfig",
    "absent_cpus",
    "fit_cpus",
]
