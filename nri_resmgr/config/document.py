"""Reads a configuration document: version and kind, then the spec of that kind."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.kinds import find_kind, known_kinds
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.config.topology_aware import TopologyAwareConfig

API_VERSION: Final = "config.nri/v1alpha1"


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
    # A document as the cluster stores it has metadata and status; both are ignored.
    top = Table.read(document, "apiVersion", "kind", "metadata", "spec", "status")
    if "apiVersion" not in top.rows:
        raise BadSetting(top.at("apiVersion"), f"missing, expected {API_VERSION}")
    top.choice("apiVersion", (API_VERSION,), "")
    if "kind" not in top.rows:
        known = " or ".join(known_kinds())
        raise BadSetting(top.at("kind"), f"missing, expected {known}")
    return find_kind(top.text("kind", ""), top.at("kind")).read(top)
