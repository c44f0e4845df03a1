"""Replicas with equal results are one group, and no others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.scenario.replicas import grouped
from nri_resmgr.values import CpuSet


class Result(msgspec.Struct, frozen=True):
    """A result of a step."""

    step: int
    title: str
    value: str


def titles(*results: Result) -> list[str]:
    return [one.title for one in grouped(results, lambda one: one.value)]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param(
            [(0, "a/web-0/x"), (0, "a/web-1/x"), (0, "a/web-3/x")],
            ["a/web-[0-1,3]/x"],
            id="replicas",
        ),
        pytest.param(
            [(0, "a/web-0/x"), (0, "a/web-0/y"), (0, "a/web-1/x"), (0, "a/web-1/y")],
            ["a/web-[0-1]/x", "a/web-[0-1]/y"],
            id="several containers",
        ),
        pytest.param([(0, "a/web-0"), (0, "a/web-1")], ["a/web-[0-1]"], id="pods"),
        pytest.param(
            [(0, "a/web-0/x"), (1, "a/web-1/x")],
            ["a/web-0/x", "a/web-1/x"],
            id="of two steps",
        ),
        pytest.param([(0, "a/web-7/x")], ["a/web-7/x"], id="only one"),
        pytest.param([(0, "configuration")], ["configuration"], id="no pod"),
        pytest.param(
            [(0, f"a/web-{number}/x") for number in range(0, 40, 2)],
            ["a/web-[0,2,4,6,8,10,12,14,16,...]/x (20)"],
            id="a long list",
        ),
    ],
)
def test_replicas_are_grouped(
    results: list[tuple[int, str]], expected: list[str]
) -> None:
    assert titles(*(Result(step, title, "same") for step, title in results)) == expected


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_a_group_has_all_replicas_with_its_result(values: list[str]) -> None:
    results = [Result(0, f"ns/p-{n}/c", value) for n, value in enumerate(values)]

    groups = grouped(results, lambda one: one.value)

    assert {one.first.value: one.members for one in groups} == {
        value: tuple(one for one in results if one.value == value) for value in values
    }
    for one in groups:
        if len(one.members) > 1:
            numbers = one.title.partition("[")[2].partition("]")[0]
            given_numbers = CpuSet.parse(numbers)
            assert [results[number] for number in given_numbers] == list(one.members)
