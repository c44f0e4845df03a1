"""Reads a configuration document: version and kind, then the spec of that kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import API_VERSION, PolicyConfig
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.config.topology_aware import TopologyAwareConfig
from nri_resmgr.policies.find import find_kind, known_kinds

MODE: Final = "mode"

# A document as the cluster stores it has metadata and status; both are ignored.
TOP: Final = ("apiVersion", "kind", "metadata", "spec", "status")
"""The keys of a document."""

_ALLOW_LOSS: Final = "allowLoss"
_ENFORCE: Final = "Enforce"
_DRY_RUN: Final = "DryRun"
_OBSERVABILITY: Final = ("log", "instrumentation")
_COMMON: Final = (_ALLOW_LOSS, MODE, *_OBSERVABILITY)


def parse_config(text: str) -> PolicyConfig:
    """Read the text of a configuration; a blank one is the built-in default.

    Raises:
        BadSyntax: The text is not one YAML document.
        BadSetting: The first error in it.
    """
    if not text.strip():
        return TopologyAwareConfig()
    return read_config(parse_yaml(text))


def read_config(document: object) -> PolicyConfig:
    """Read a parsed configuration; None is the built-in default.

    Raises:
        BadSetting: The first error in it.
    """
    if document is None:
        return TopologyAwareConfig()
    return read_top(Table.read(document, *TOP))


def read_top(top: Table) -> PolicyConfig:
    """Read the mapping of a parsed configuration, whose keys are among `TOP`.

    Raises:
        BadSetting: The first error in it.
    """
    top.require("apiVersion", API_VERSION)
    top.choice("apiVersion", (API_VERSION,), "")
    if "kind" not in top.rows:
        known = " or ".join(known_kinds())
        raise BadSetting(top.at("kind"), f"missing, expected {known}")
    kind = find_kind(top.text("kind"), top.at("kind"))
    spec = top.rows.get("spec") or {}
    if not isinstance(spec, Mapping):
        return kind.read(top)  # which raises
    # Read here for all kinds: one of another package may have to replace a policy that
    # grants exclusive CPUs, and is observed as the others are, without knowing of this.
    found = {key: row for key, row in spec.items() if key in _COMMON}
    if found:
        common = replace(top, rows={"spec": found}).table("spec", *_COMMON)
        rest = {key: row for key, row in spec.items() if key not in found}
        config = kind.read(replace(top, rows={**top.rows, "spec": rest}))
        return replace(config, **_read_common(common, config))
    return kind.read(top)


def _read_common(common: Table, config: PolicyConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if common.flag(_ALLOW_LOSS):
        fields["allow_loss"] = True
    if common.choice(MODE, (_ENFORCE, _DRY_RUN), _ENFORCE) == _DRY_RUN:
        fields["dry_run"] = True
    if common.rows.keys() & set(_OBSERVABILITY):
        # Late: on the start path, and few documents have these keys.
        from nri_resmgr.config.observability import read_observability

        more, ineffective = read_observability(common)
        fields |= {**more, "ineffective": config.ineffective + ineffective}
    return fields
