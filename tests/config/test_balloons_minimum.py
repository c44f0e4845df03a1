"""Documents whose first balloons do not fit: what the error advises is accepted."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.policies import parse_config
from nri_resmgr.topology.synthetic import parse_spec

MACHINE = parse_spec("1s8c1t")
BIG = {"name": "big", "minCPUs": 6, "minBalloons": 1}
SMALL = {"name": "small", "minCPUs": 2, "minBalloons": 1}
WHOLE = {"name": "whole", "minBalloons": 1, "components": [{"balloonType": "big"}]}
HELP = re.compile(r"lower (\w+)(?: or (\w+))? of type (\w+)")


def build(types: list[dict[str, Any]]) -> None:
    spec = {"reservedResources": {"cpu": 1}, "balloonTypes": types}
    document = {"apiVersion": API_VERSION, "kind": "BalloonsPolicy", "spec": spec}
    build_policy(parse_config(msgspec.json.encode(document).decode()), MACHINE)


def lowered(types: list[dict[str, Any]], name: str, key: str) -> list[dict[str, Any]]:
    return [{**one, key: 0} if one["name"] == name else one for one in types]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (
            [BIG, SMALL],
            {
                ("big", "minCPUs"),
                ("big", "minBalloons"),
                ("small", "minCPUs"),
                ("small", "minBalloons"),
            },
        ),
        ([{**BIG, "minCPUs": 9}, SMALL], {("big", "minCPUs"), ("big", "minBalloons")}),
        (
            [{**BIG, "minBalloons": 0}, SMALL, WHOLE],
            {
                ("big", "minCPUs"),
                ("whole", "minBalloons"),
                ("small", "minCPUs"),
                ("small", "minBalloons"),
            },
        ),
        ([{**BIG, "minCPUs": 9}, {**SMALL, "minCPUs": 9}], set()),
    ],
    ids=["either", "one", "a component", "several"],
)
def test_the_advice_of_the_error_is_accepted(
    types: list[dict[str, Any]], expected: set[tuple[str, str]]
) -> None:
    with pytest.raises(BadSetting) as error:
        build(types)

    found = {
        (name, key)
        for first, second, name in HELP.findall(str(error.value))
        for key in (first, second)
        if key
    }
    assert found == expected
    for name, key in found:
        build(lowered(types, name, key))
    assert bool(found) != ("of several types" in str(error.value))
