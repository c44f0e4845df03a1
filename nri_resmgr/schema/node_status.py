"""The custom resource that an agent writes for its node."""

from __future__ import annotations

from typing import Final

from nri_resmgr.schema.conditions import CONDITIONS
from nri_resmgr.values.documents import JsonObject


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _number(description: str) -> JsonObject:
    return {"type": "integer", "format": "int64", "description": description}


def _column(name: str, path: str, description: str, priority: int = 0) -> JsonObject:
    return {
        "name": name,
        "type": "string",
        "description": description,
        "jsonPath": path,
        "priority": priority,
    }


_STATUS: Final[JsonObject] = {
    "type": "object",
    "description": "What the agent knows of its node.",
    "properties": {
        "observed": {
            "type": "object",
            "description": "The object that configures the node.",
            "properties": {
                "kind": _text("Its kind."),
                "namespace": _text("Its namespace."),
                "name": _text("Its name."),
                "generation": _number("The generation that was read."),
                "uid": _text("Its UID."),
            },
        },
        "observedGeneration": _number("The generation of this object."),
        "mode": _text("Enforce, or DryRun: decide and report, change nothing."),
        "policy": _text("The policy in force."),
        "version": _text("Version of the daemon."),
        "runtime": _text("Name and version of the runtime."),
        "cpus": {
            "type": "object",
            "description": "Numbers of CPUs by use: online, reserved, exclusive, "
            "shared, isolated, idle.",
            # Open: a later daemon may count more.
            "additionalProperties": {"type": "integer", "format": "int32"},
        },
        "conditions": CONDITIONS,
    },
}

NODE_RESOURCE_MANAGER: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "noderesourcemanagers.config.nri"},
    "spec": {
        "group": "config.nri",
        "names": {
            "kind": "NodeResourceManager",
            "listKind": "NodeResourceManagerList",
            "plural": "noderesourcemanagers",
            "singular": "noderesourcemanager",
            "shortNames": ["nrm"],
            "categories": ["nri"],
        },
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    _column("Policy", ".status.policy", "The policy in force"),
                    _column("Source", ".status.observed.name", "Configured by"),
                    _column(
                        "Applied",
                        '.status.conditions[?(@.type=="ConfigurationApplied")].status',
                        "Whether that configuration is in force",
                    ),
                    _column(
                        "Ready",
                        '.status.conditions[?(@.type=="Ready")].status',
                        "Whether the daemon works as configured",
                    ),
                    _column("Mode", ".status.mode", "Enforce or DryRun", 1),
                    _column("Version", ".status.version", "Of the daemon", 1),
                    _column(
                        "Message",
                        '.status.conditions[?(@.type=="Ready")].message',
                        "Why it is not ready",
                        1,
                    ),
                    {
                        "name": "Age",
                        "type": "date",
                        "jsonPath": ".metadata.creationTimestamp",
                    },
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "The state of nri-resmgr on the node of the "
                        "same name, written by its agent.",
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "description": "Nothing: the object is a report.",
                            },
                            "status": _STATUS,
                        },
                    }
                },
            }
        ],
    },
}
"""Cluster-scoped, as nodes are; each is owned by its node."""
