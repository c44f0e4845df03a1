"""One document, wherever it comes from: version, kind, and a spec for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.static_policy import read_static_policy
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.config.topology_aware import TopologyAwareConfig, read_topology_aware

API_VERSION: Final = "config.nri/v1alpha1"


def _read_balloons(top: Table) -> PolicyConfig:
    # Only some documents need it, and without byte code it takes long to import.
    from nri_resmgr.config.balloons import read_balloons

    return read_balloons(top)


_READERS: Final[Mapping[str, Callable[[Table], PolicyConfig]]] = {
    "BalloonsPolicy": _read_balloons,
    "StaticPolicy": read_static_policy,
    "TopologyAwarePolicy": read_topology_aware,
}


def parse_config(text: str) -> PolicyConfig:
    """Read the text of a configuration; a blank one is the built-in default.

    Raises:
        BadSyntax: The text is not one YAML document.
        BadSetting: The first problem met in it.
    """
    if not text.strip():
        return TopologyAwareConfig()
    return read_config(parse_yaml(text))


def read_config(document: object) -> PolicyConfig:
    """Read a configuration that is YAML no more; None is the built-in default.

    Raises:
        BadSetting: The first problem met in it.
    """
    if document is None:
        return TopologyAwareConfig()
    # Metadata and status are the cluster's; documents are taken as it stores them.
    top = Table.read(document, "apiVersion", "kind", "metadata", "spec", "status")
    for key, known in (("apiVersion", (API_VERSION,)), ("kind", tuple(_READERS))):
        if key not in top.rows:
            raise BadSetting(top.at(key), f"missing, expected {' or '.join(known)}")
        top.choice(key, known, "")
    return _READERS[top.text("kind", "")](top)
