"""The agent's rights as they are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

Rule: TypeAlias = Mapping[str, Any]

_FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"


def _of(kind: str) -> tuple[Rule, ...]:
    text = (_FOLDER / "cluster/rbac.yaml").read_text(encoding="utf-8")
    (found,) = (one for one in yaml.safe_load_all(text) if one["kind"] == kind)
    return tuple(found["rules"])


def _of_config_maps() -> Rule:
    text = (_FOLDER / "options/config-maps/kustomization.yaml").read_text("utf-8")
    (patch,) = (
        one["patch"]
        for one in yaml.safe_load(text)["patches"]
        if one["target"]["kind"] == "Role"
    )
    (added,) = yaml.safe_load(patch)
    rule: Rule = added["value"]
    return rule


def _of_option(option: str) -> Rule:
    text = (_FOLDER / f"options/{option}/kustomization.yaml").read_text("utf-8")
    (patch,) = (
        one["patch"]
        for one in yaml.safe_load(text)["patches"]
        if one["target"]["kind"] == "ClusterRole"
    )
    (added,) = yaml.safe_load(patch)
    rule: Rule = added["value"]
    return rule


NODE_STATUS: Final = _of_option("node-status")
"""With documents that have ``publish: {by: node-status}``."""

STARTUP_TAINT: Final = _of_option("startup-taint")
"""With ``--startup-taint``."""

RULES: Final = _of("ClusterRole")
RULES_OF_NAMESPACE: Final = _of("Role")
CONFIG_MAPS: Final = _of_config_maps()
"""With ``--source config-maps``."""
