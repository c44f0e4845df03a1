"""Schemas of documents, for editors and for the API server; does no I/O.

`shape_of` (`of_kind`) has the reader of a kind read the documents of `samples` by
tables that note each of its calls (`notes`); what it may read is a `Shape` (`shape`).
`editor` writes shapes as JSON Schema, `resources` as custom resource definitions, with
the texts of `meanings`. `node_status` and `adjustments` define the resources that are
no configuration. Only ``nri-resmgr schema`` imports this package.
"""

from __future__ import annotations

from nri_resmgr.schema.editor import json_schema, json_schema_of_all
from nri_resmgr.schema.of_kind import shape_of
from nri_resmgr.schema.resources import custom_resources
from nri_resmgr.schema.shape import ANY, Form, Shape

__all__ = [
    "ANY",
    "Form",
    "Shape",
    "custom_resources",
    "json_schema",
    "json_schema_of_all",
    "shape_of",
]
