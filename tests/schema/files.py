"""The committed files of schemas, which ``make crds`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from nri_resmgr.cli.schema import json_of, yaml_of
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.schema import custom_resources, json_schema_of_all

ROOT: Final = Path(__file__).parents[2]
CRDS: Final = ROOT / "deploy" / "crds"
EDITORS: Final = ROOT / "docs" / "schema" / "nri-resmgr.schema.json"

_HEAD: Final = "# Generated from the readers of documents: make crds\n"


@cache
def generated() -> Mapping[Path, str]:
    """Return the text of each file."""
    found = {EDITORS: json_of(json_schema_of_all(sorted(BUILT_IN)))}
    names = []
    for one in custom_resources().values():
        plural, _, group = one["metadata"]["name"].partition(".")
        names.append(f"{group}_{plural}.yaml")
        found[CRDS / names[-1]] = _HEAD + yaml_of([one])
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "labels": [{"pairs": {"app.kubernetes.io/name": "nri-resmgr"}}],
        "resources": names,
    }
    text = yaml.safe_dump(kustomization, sort_keys=False)
    return {**found, CRDS / "kustomization.yaml": _HEAD + text}
