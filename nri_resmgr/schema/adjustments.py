"""CRI Resource Manager's custom resource `Adjustment`, as it defines it.

Source:
    cri-resource-manager, ``pkg/apis/resmgr/v1alpha1/adjustment-schema.yaml``.
"""

from __future__ import annotations

from typing import Final

from nri_resmgr.values.documents import JsonObject


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _texts(description: str) -> JsonObject:
    return {"type": "array", "description": description, "items": {"type": "string"}}


def _resources(description: str) -> JsonObject:
    return {
        "type": "object",
        "description": description,
        "properties": {
            "cpu": _text("CPUs, such as 750m."),
            "memory": _text("Bytes, such as 500Mi."),
        },
    }


_SCOPE: Final[JsonObject] = {
    "type": "array",
    "description": "The containers that it is for: those of any entry.",
    "items": {
        "type": "object",
        "properties": {
            "nodes": _texts("Names of nodes, or their beginning and *; empty for all."),
            "containers": {
                "type": "array",
                "description": "Expressions, of which one has to match; empty for all.",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": _text("What the expression looks at."),
                        "operator": _text("How it compares, such as In or Matches."),
                        "values": _texts("What it compares with."),
                    },
                },
            },
        },
    },
}
_SPEC: Final[JsonObject] = {
    "type": "object",
    "required": ["scope"],
    "properties": {
        "scope": _SCOPE,
        "resources": {
            "type": "object",
            "description": "Requests and limits instead of those of the pod.",
            "properties": {
                "requests": _resources("Requests."),
                "limits": _resources("Limits, not below the requests."),
            },
        },
        "classes": {
            "type": "object",
            "description": "Classes of resources.",
            "properties": {
                "rdt": _text("Class of cache and memory bandwidth."),
                "blockio": _text("Class of block I/O."),
            },
        },
        "toptierLimit": _text("The most of fast memory, such as 500Mi."),
    },
}
_STATUS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "nodes": {
            "type": "object",
            "description": "By node; of an object for many nodes, of the first ones.",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "errors": {
                        "type": "object",
                        "description": "By container; empty where it is in force.",
                        "additionalProperties": {"type": "string"},
                    }
                },
            },
        }
    },
}

ADJUSTMENT: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "adjustments.criresmgr.intel.com"},
    "spec": {
        "group": "criresmgr.intel.com",
        "names": {
            "kind": "Adjustment",
            "listKind": "AdjustmentList",
            "plural": "adjustments",
            "singular": "adjustment",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": _SPEC,
                            "status": _STATUS,
                        },
                    }
                },
            }
        ],
    },
}
"""Without a status subresource: its agents patch the object itself."""
