"""Documents to settings: text in, frozen values out; nothing here opens a file."""

from __future__ import annotations

from nri_resmgr.config.cpus import AllBut, Amount, CpuChoice, Listed
from nri_resmgr.config.document import API_VERSION, parse_config
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.static_policy import (
    FittingCpus,
    StaticPolicyConfig,
    fit_cpus,
)

__all__ = [
    "API_VERSION",
    "AllBut",
    "Amount",
    "BadSetting",
    "BadSyntax",
    "CpuChoice",
    "FittingCpus",
    "Listed",
    "StaticPolicyConfig",
    "fit_cpus",
    "parse_config",
]
