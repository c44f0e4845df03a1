"""Values as plain data: what is left out, and what is refused."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.values import CpuSet, MilliCpus, NodeSet
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen
from nri_resmgr.values.plain import BadValue, from_plain, to_plain

_NONE: Mapping[str, Any] = {}


class Colour(enum.StrEnum):
    """Some words."""

    RED = "red"
    BLUE = "blue"


@frozen
class Wheel(ByContent):
    """A value inside of another."""

    size: int
    colours: frozenset[Colour] = frozenset()

    def __attrs_post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a wheel has a size")


@frozen
class Car(ByContent):
    """One field of each type."""

    name: str
    wheels: tuple[Wheel, ...] = ()
    cpus: CpuSet = CpuSet()
    nodes: NodeSet = NodeSet()
    limit: MilliCpus | None = None
    parked: bool = False
    labels: Mapping[str, str] = attrs.field(default=_NONE, hash=False)
    spares: Mapping[str, Wheel] = attrs.field(default=_NONE, hash=False)
    count: int = attrs.field(init=False)

    @count.default
    def _counted(self) -> int:
        return len(self.wheels)


WHEELS = st.builds(
    Wheel, st.integers(min_value=0), st.frozensets(st.sampled_from(Colour))
)
CARS = st.builds(
    Car,
    st.text(),
    st.lists(WHEELS, max_size=3).map(tuple),
    st.sets(st.integers(0, 300)).map(CpuSet.from_iterable),
    st.sets(st.integers(0, 300)).map(NodeSet.from_iterable),
    st.none() | st.integers(),
    st.booleans(),
    st.dictionaries(st.text(), st.text(), max_size=2),
    st.dictionaries(st.text(), WHEELS, max_size=2),
)


@given(CARS)
def test_what_is_read_back_is_what_was_written(car: Car) -> None:
    assert from_plain(Car, json.loads(json.dumps(to_plain(Car, car)))) == car


def test_fields_with_their_default_are_left_out() -> None:
    full = Car(
        "a",
        (Wheel(3, frozenset(Colour)), Wheel(0)),
        CpuSet.of(0, 1, 2, 7),
        NodeSet.of(1),
        MilliCpus(0),
        True,
        {"k": "v"},
        {"s": Wheel(1)},
    )

    assert to_plain(Car, Car("a")) == {"name": "a"}
    assert to_plain(Car, full) == {
        "name": "a",
        "wheels": [{"size": 3, "colours": ["blue", "red"]}, {"size": 0}],
        "cpus": "0-2,7",
        "nodes": "1",
        "limit": 0,
        "parked": True,
        "labels": {"k": "v"},
        "spares": {"s": {"size": 1}},
    }


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param(7, "expected dict, not int", id="no table at all"),
        pytest.param({}, "Car needs ['name']", id="a field is missing"),
        pytest.param({"name": None}, ".name: expected str, not NoneType", id="null"),
        pytest.param(
            {"name": "a", "x": 1}, "Car has no 'x'", id="a field that nobody knows"
        ),
        pytest.param(
            {"name": "a", "count": 0}, "Car has no 'count'", id="a derived field"
        ),
        pytest.param(
            {"name": "a", "limit": True},
            ".limit: expected int, not bool",
            id="a truth is no number",
        ),
        pytest.param(
            {"name": "a", "limit": 1.0},
            ".limit: expected int, not float",
            id="a fraction is no number",
        ),
        pytest.param(
            {"name": "a", "cpus": "3-1"},
            ".cpus: not a CPU or node list: '3-1' (at '3-1')",
            id="a list that the kernel would refuse",
        ),
        pytest.param(
            {"name": "a", "wheels": {}},
            ".wheels: expected list, not dict",
            id="a table",
        ),
        pytest.param(
            {"name": "a", "wheels": [{"size": 1}, {"size": 1, "colours": ["green"]}]},
            ".wheels[1].colours[0]: 'green' is not a valid Colour",
            id="a word that is none, deep inside",
        ),
        pytest.param(
            {"name": "a", "wheels": [{"size": 1, "colours": [[]]}]},
            ".wheels[0].colours[0]: [] is not a valid Colour",
            id="a list in place of a word",
        ),
        pytest.param(
            {"name": "a", "wheels": [{"size": -1}]},
            ".wheels[0]: a wheel has a size",
            id="a value that its class refuses",
        ),
        pytest.param(
            {"name": "a", "spares": {"s": {}}},
            ".spares['s']: Wheel needs ['size']",
            id="a mistake in a table",
        ),
        pytest.param(
            {"name": "a", "labels": []}, ".labels: expected dict, not list", id="a list"
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(data: Any, sentence: str) -> None:
    with pytest.raises(BadValue) as mistake:
        from_plain(Car, data)

    assert str(mistake.value) == sentence


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "wheels", "size", "cpus"]), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_anything_is_read_or_refused(data: Any) -> None:
    try:
        car = from_plain(Car, data)
    except BadValue:
        return
    assert from_plain(Car, to_plain(Car, car)) == car
