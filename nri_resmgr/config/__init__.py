"""Documents to settings: text in, frozen values out; nothing here opens a file."""

from __future__ import annotations

from nri_resmgr.config.cpus import (
    AllBut,
    Amount,
    CpuChoice,
    KnownCpus,
    Listed,
    OfCgroup,
)
from nri_resmgr.config.document import API_VERSION, parse_config
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.fit import AVAILABLE, RESERVED, FittingCpus, fit_cpus
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
