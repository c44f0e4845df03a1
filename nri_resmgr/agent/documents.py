"""Objects of the cluster as documents for the daemon."""

from __future__ import annotations

from typing import Final

import yaml

from nri_resmgr.agent.api import ApiObject, Resource
from nri_resmgr.agent.choice import ConfigObject
from nri_resmgr.agent.object_status import entries_in
from nri_resmgr.config import API_VERSION
from nri_resmgr.config.migrate import convert_text
from nri_resmgr.policies import known_kinds, read_config

DOCUMENT: Final = "nri-resmgr.yaml"
"""The key of a ConfigMap with a document of ours; other keys are those of CRI-RM."""

_GROUP, _VERSION = API_VERSION.split("/")


def policy_resources() -> tuple[Resource, ...]:
    """Return the custom resources that configure a node, one for each kind."""
    return tuple(
        Resource(_GROUP, _VERSION, _plural(kind), kind, is_namespaced=True)
        for kind in known_kinds()
    )


def _plural(kind: str) -> str:
    # As Go's tools do: TopologyAwarePolicy, topologyawarepolicies.
    return f"{kind.lower().removesuffix('y')}ies"


def of_custom_resource(found: ApiObject) -> ConfigObject:
    """Return the document of a custom resource: it is one already."""
    document = {
        "apiVersion": found.resource.api_version,
        "kind": found.resource.kind,
        "metadata": {"name": found.name, "namespace": found.namespace},
        "spec": found.body.get("spec"),
    }
    return _config(found, yaml.safe_dump(document, sort_keys=False))


def of_config_map(found: ApiObject) -> ConfigObject:
    """Return the document of a ConfigMap: of ours, or converted from CRI-RM's sections.

    Raises:
        InputError: It cannot be converted.
    """
    data = found.body.get("data") or {}
    if (text := data.get(DOCUMENT)) is not None:
        return _config(found, str(text))
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": found.name},
        "data": dict(data),
    }
    return _config(found, convert_text(yaml.safe_dump(config_map), read_config))


def _config(found: ApiObject, text: str) -> ConfigObject:
    return ConfigObject(
        kind=found.resource.kind,
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        generation=found.generation,
        resource_version=found.version,
        text=text,
        reported_by=len(entries_in(found.body.get("status"))),
    )
