"""Machines as people and programs read them."""

from __future__ import annotations

import json

import pytest
import yaml

from nri_resmgr.topology.document import (
    BadMachineDocument,
    from_document,
    to_document,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.text import format_tree


def test_a_tree_shows_differences() -> None:
    machine = parse_spec(
        "1s2d2c2t l3=1 cxl=64Gi:movable offline=3 isolated=7 hugepages=2Mi:3"
    )

    assert (
        format_tree(machine)
        == """\
machine: 7 CPUs online (0-2,4-7), 4 cores, offline 3, isolated 7
  package 0: CPUs 0-2,4-7
    die 0: CPUs 0-1,4-5
      node 0: 16Gi dram, 3 x 2Mi pages, CPUs 0-1,4-5
    die 1: CPUs 2,6-7
      node 1: 16Gi dram, 3 x 2Mi pages, CPUs 2,6-7
  node 2: 64Gi cxl, movable
  distances:
    node    0   1   2
       0   10  12  24
       1   12  10  26
       2   24  26  10"""
    )


def test_a_small_tree_is_small() -> None:
    assert (
        format_tree(parse_spec("1s1c2t1e memory=0"))
        == """\
machine: 3 CPUs online (0-2), 2 cores, performance 0-1, efficient 2
  package 0: CPUs 0-2
      node 0: empty, CPUs 0-2
      level 3 cache 32Mi: CPUs 0-2"""
    )


def test_a_document_is_plain_and_leaves_out_defaults() -> None:
    assert to_document(parse_spec("1c memory=1Gi"))["nodes"] == (
        {"id": 0, "cpus": "0", "memory": 1 << 30},
    )


def test_a_document_survives_json_and_yaml() -> None:
    machine = parse_spec("2s1c2t1e memory=1Gi,0 hbm=1Gi:movable offline=1")
    document = to_document(machine)

    assert from_document(json.loads(json.dumps(document))) == machine
    assert from_document(yaml.safe_load(yaml.safe_dump(document))) == machine


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            {"color": "red"}, "Object contains unknown field `color`", id="a key"
        ),
        pytest.param(
            {"isolated": "x"},
            "not a CPU or node list: 'x' (at 'x') - at `$.isolated`",
            id="a list",
        ),
        pytest.param(
            {"nodes": [{"id": "0"}]},
            "Expected `int`, got `str` - at `$.nodes[0].id`",
            id="a text",
        ),
        pytest.param(
            {"nodes": [{"id": 0, "kind": "core rope"}]},
            "Invalid enum value 'core rope' - at `$.nodes[0].kind`",
            id="a word",
        ),
        pytest.param(
            {"nodes": []},
            "inconsistent machine: CPU 0 is online and in no node",
            id="a contradiction",
        ),
    ],
)
def test_a_bad_document_is_refused_with_its_path(
    change: dict[str, object], why: str
) -> None:
    with pytest.raises(BadMachineDocument) as caught:
        from_document(to_document(parse_spec("1c")) | change)

    assert str(caught.value) == f"not a machine: {why}"


def test_the_first_problem_is_reported_with_its_path() -> None:
    document = to_document(parse_spec("4c"))
    for core in document["cores"]:
        core["cpus"] = "x"

    with pytest.raises(BadMachineDocument) as caught:
        from_document(document)

    assert caught.value.why.count("not a CPU") == 1
    assert caught.value.why.endswith("- at `$.cores[0].cpus`")
