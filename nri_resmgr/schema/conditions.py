"""The schema of conditions: `metav1.Condition` of Kubernetes, in a list by type."""

from __future__ import annotations

from typing import Final

from nri_resmgr.values.documents import JsonObject

EMPTY_TEXT: Final[JsonObject] = {"nullable": True}
"""Of text that may be empty: Kubernetes before 1.27, built with Go 1.19 or newer, as in
Debian, takes it for a null (go-openapi, ``validate/type.go``)."""

CONDITIONS: Final[JsonObject] = {
    "type": "array",
    "description": "Conditions, as kubectl wait reads them.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {
                "type": "string",
                "description": "Name of the condition.",
                "maxLength": 316,
            },
            "status": {
                "type": "string",
                "description": "True, False or Unknown.",
                "enum": ["True", "False", "Unknown"],
            },
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "The generation that the condition is about.",
            },
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "When the status changed last.",
            },
            "reason": {
                "type": "string",
                "description": "The reason in one word.",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "type": "string",
                **EMPTY_TEXT,
                "description": "The reason in a sentence.",
                "maxLength": 32768,
            },
        },
    },
}
"""Sizes and patterns are those of Kubernetes, ``apimachinery/pkg/apis/meta/v1``."""
