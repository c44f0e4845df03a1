"""Kinds of policies: what a kind is, and the built-in ones.

A kind is one object that an entry point of the group ``nri_resmgr.policies`` names:
the reader of its configuration, the builder and the checkpoint form of the policy.
docs/write-a-policy.md has a complete one.

* `kind` has the base class, `PolicyKind`. `find` loads kinds by their names, and
  `documents` reads a configuration by its kind.
* `topology_aware`, `balloons`, `static`, `static_plus`, `podpools`, `dynamic_pools`,
  `static_pools` and `none` are the built-in kinds, each with the settings that it makes
  of a configuration. `balloons` has `balloon_types` and `reserved_balloons` besides.
* `chosen_cpus` is what most of them share: the choice of available and reserved CPUs.

The author of a kind in another package imports from here what it needs for documents
and for the host, and what the policy itself needs from `nri_resmgr.policy`.
"""

from __future__ import annotations

from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies.documents import parse_config, read_config
from nri_resmgr.policies.find import find_kind, known_kinds
from nri_resmgr.policies.kind import PolicyKind

__all__ = [
    "BadSetting",
    "PolicyConfig",
    "PolicyKind",
    "Table",
    "Tree",
    "find_kind",
    "known_kinds",
    "parse_config",
    "read_config",
]
