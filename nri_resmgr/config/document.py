"""One document, wherever it comes from: version, kind, and a spec for each kind."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.static_policy import StaticPolicyConfig, read_static_policy
from nri_resmgr.config.table import Table

API_VERSION: Final = "config.nri/v1alpha1"

_KINDS: Final = {"StaticPolicy": read_static_policy}


def parse_config(text: str) -> StaticPolicyConfig:
    """Read the text of a configuration; a blank one is the built-in default.

    Raises:
        BadSyntax: The text is not one YAML document.
        BadSetting: The first problem met in it.
    """
    if not text.strip():
        return StaticPolicyConfig()  # and spare the start path the YAML library
    from nri_resmgr.config.syntax import parse_yaml

    document = parse_yaml(text)
    if document is None:
        return StaticPolicyConfig()
    # Metadata is the cluster's; documents are taken as they are stored there.
    top = Table.read(document, "apiVersion", "kind", "metadata", "spec")
    for key, known in (("apiVersion", (API_VERSION,)), ("kind", tuple(_KINDS))):
        if key not in top.rows:
            raise BadSetting(top.at(key), f"missing, expected {' or '.join(known)}")
        top.choice(key, known, "")
    return _KINDS[top.text("kind", "")](top)
