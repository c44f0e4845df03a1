"""What plugins change between two sessions: contents as plain data, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from hypothesis import given

from nri_resmgr.sdk.chain import Chain, ChainSession, Change, Passage, as_plain, changes
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    LinuxCpu,
    LinuxResources,
    Pod,
    Rlimit,
)
from nri_resmgr.stub.convert import to_message
from tests.strategies_model import any_value, values_of

POD = Pod(id="p", name="web", namespace="shop")
APP = Container(id="c", name="app")


def leaves(data: object, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the contents of plain data that are no mappings, by their places."""
    if isinstance(data, Mapping):
        for name, one in data.items():
            yield from leaves(one, f"{at}.{name}")
    else:
        yield at.removeprefix("."), data


def wrapped(kind: Descriptor, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data as the JSON mapping has it, for protobuf's own parser."""
    return {name: _content(kind.fields_by_name[name], data[name]) for name in data}


def _content(field: FieldDescriptor, data: Any) -> Any:
    kind = field.message_type
    if kind is None:
        return data
    if kind.name.startswith("Optional"):
        return {"value": data}
    if kind.GetOptions().map_entry:
        value = kind.fields_by_name["value"]
        return {key: _content(value, one) for key, one in data.items()}
    if isinstance(data, list):
        return [wrapped(kind, one) for one in data]
    return wrapped(kind, data)


@given(any_value())
def test_plain_data_has_all_that_the_message_has(value: Any) -> None:
    message = to_message(value)

    data = wrapped(message.DESCRIPTOR, as_plain(value))

    assert ParseDict(data, type(message)()) == message


@given(values_of("Container"), values_of("Container"))
def test_exactly_the_contents_that_differ_are_changes(first: Any, second: Any) -> None:
    before, after = as_plain(first), as_plain(second)
    old, new = dict(leaves(before)), dict(leaves(after))

    places = {name for name in old | new if old.get(name) != new.get(name)}

    assert {one.field for one in changes(before, after)} == places


@given(values_of("Container"))
def test_equal_contents_have_no_changes(value: Any) -> None:
    assert list(changes(as_plain(value), as_plain(value))) == []


@pytest.mark.parametrize(
    ("adjustment", "plain"),
    [
        pytest.param(
            ContainerAdjustment().set_cpu_shares(0).set_cpus("1"),
            {"linux": {"resources": {"cpu": {"shares": 0, "cpus": "1"}}}},
            id="an optional number is its value, also 0",
        ),
        pytest.param(
            ContainerAdjustment().set_annotation("value", "x"),
            {"annotations": {"value": "x"}},
            id="a key that is called as the field of an optional one",
        ),
        pytest.param(
            ContainerAdjustment().set_rlimit(Rlimit("RLIMIT_NOFILE", 2, 1)),
            {"rlimits": [{"type": "RLIMIT_NOFILE", "hard": 2, "soft": 1}]},
            id="an item of a list",
        ),
    ],
)
def test_contents_of_an_adjustment(
    adjustment: ContainerAdjustment, plain: dict[str, Any]
) -> None:
    assert as_plain(adjustment) == plain


def test_each_session_reports_what_changed_since_the_one_before() -> None:
    reports: list[Passage] = []
    chain = Chain(reports.append)
    first, second = ChainSession("00", chain), ChainSession("99", chain)
    wanted = LinuxResources(cpu=LinuxCpu(cpus="0-3"))
    pinned = LinuxResources(cpu=LinuxCpu(cpus="1"))

    first.create_container(POD, APP)
    second.create_container(POD, Container(id="c", name="app", env=("A=1",)))
    for _ in range(2):  # the first one compares nothing with the request before
        first.update_container(POD, APP, wanted)
        second.update_container(POD, APP, pinned)

    added = Change("env", [], ["A=1"])
    moved = Change("cpu.cpus", "0-3", "1")
    updated = [
        Passage("UpdateContainer", "shop/web/app", "", "00", ()),
        Passage("UpdateContainer", "shop/web/app", "00", "99", (moved,)),
    ]
    assert reports == [
        Passage("CreateContainer", "shop/web/app", "", "00", ()),
        Passage("CreateContainer", "shop/web/app", "00", "99", (added,)),
        *updated,
        *updated,
    ]


def test_a_request_that_only_the_last_session_got_is_not_compared() -> None:
    reports: list[Passage] = []
    chain = Chain(reports.append)

    ChainSession("00", chain).create_container(POD, Container(id="b", env=("A=1",)))
    ChainSession("99", chain).create_container(POD, APP)

    assert reports[-1] == Passage("CreateContainer", "shop/web/app", "", "99", ())
