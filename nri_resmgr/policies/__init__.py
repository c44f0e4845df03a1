"""Kinds of policies: what a kind is, and the built-in ones.

A kind is one object that an entry point of the group ``nri_resmgr.policies`` names:
the reader of its configuration, the builder and the checkpoint form of the policy.
docs/write-a-policy.md has a complete one.

* `kind` has the base class, `PolicyKind`, and `kind_named`. `find_kind` of
  `nri_resmgr.config.kinds` loads the entry points.
* `topology_aware`, `balloons`, `static`, `static_plus`, `podpools`, `dynamic_pools`,
  `static_pools` and `none` are the built-in kinds, each with the settings that it makes
  of a configuration. `balloons` has `balloon_types` and `reserved_balloons` besides.
* `chosen_cpus` is what most of them share: the choice of available and reserved CPUs.

How a policy decides is in `nri_resmgr.policy`.
"""

from __future__ import annotations

from nri_resmgr.policies.kind import PolicyKind, kind_named

__all__ = ["PolicyKind", "kind_named"]
