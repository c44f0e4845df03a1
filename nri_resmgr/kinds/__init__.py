"""Kinds of policies: the reader of the configuration, the builder, the checkpoint form.

A kind is one object that an entry point of the group ``nri_resmgr.policies`` names;
docs/write-a-policy.md has a complete one. `kind` has the base class, `PolicyKind`, and
`kind_named`. `find_kind` of `nri_resmgr.config.kinds` loads the entry points; the
built-in kinds are in `nri_resmgr.app.policies`.
"""

from __future__ import annotations

from nri_resmgr.kinds.kind import PolicyKind, kind_named

__all__ = ["PolicyKind", "kind_named"]
