"""``nri-resmgr schema`` as users start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from nri_resmgr.policies.find import GROUP
from nri_resmgr.schema import custom_resources
from tests.kinds.distributions import install

pytestmark = pytest.mark.process

MODULE = """\
from nri_resmgr.policies import PolicyConfig, PolicyKind, find_kind


class Kind(PolicyKind):
    name = "HousePolicy"

    def build(self, config, machine, tree):
        return find_kind("NonePolicy").build(config, machine, tree)

    def read(self, top):
        spec = top.table("spec", "rooms", "attic")
        spec.number("rooms", 1, 12, 3)
        if "attic" in spec.rows:
            spec.table("attic", "window")
        return PolicyConfig()


KIND = Kind()
"""
PYPROJECT = f"""\
[project]
name = "house"
version = "1.0"
[project.entry-points."{GROUP}"]
HousePolicy = "house_of_schemas:KIND"
"""


def schema(
    *arguments: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": str(folder)} if folder else {}
    return subprocess.run(
        [sys.executable, "-m", "nri_resmgr", "schema", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **path},
    )


def test_the_schema_of_one_kind_and_of_all_agree() -> None:
    one, of_all = (json.loads(schema(*kind).stdout) for kind in (["NonePolicy"], []))

    for good in (True, False):
        spec = {"miscLimits": good, **({} if good else {"pinCPU": True})}
        document = {
            "apiVersion": "config.nri/v1alpha1",
            "kind": "NonePolicy",
            "spec": spec,
        }
        for found in (one, of_all):
            jsonschema.Draft202012Validator.check_schema(found)
            assert jsonschema.Draft202012Validator(found).is_valid(document) is good


def test_definitions_are_printed_as_documents_of_yaml() -> None:
    (one,) = yaml.safe_load_all(schema("--crd", "Adjustment").stdout)
    of_all = list(yaml.safe_load_all(schema("--crd").stdout))

    assert one == custom_resources()["Adjustment"]
    assert of_all == list(custom_resources().values())


@pytest.mark.parametrize("arguments", [("NoPolicy",), ("--crd", "NoPolicy")])
def test_an_unknown_kind_is_bad_input(arguments: tuple[str, ...]) -> None:
    done = schema(*arguments)

    assert done.returncode == 2
    assert "BalloonsPolicy or DynamicPoolsPolicy" in done.stderr


def test_a_kind_of_another_package_has_a_schema(tmp_path: Path) -> None:
    install(tmp_path, PYPROJECT, house_of_schemas=MODULE)

    found = json.loads(schema("HousePolicy", folder=tmp_path).stdout)

    options = found["properties"]["spec"]["properties"]
    assert {key: options[key] for key in ("rooms", "attic")} == {
        "rooms": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 12,
            "default": 3,
        },
        # Only read where it is there, so nothing is known of it.
        "attic": {},
    }
