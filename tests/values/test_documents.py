"""Values as plain data: what is left out, and what is refused."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, MilliCpus, NodeSet
from nri_resmgr.values.documents import BadValue, from_plain, to_plain

_NONE: Mapping[str, Any] = MappingProxyType({})


class Colour(enum.StrEnum):
    """Some words."""

    RED = "red"
    BLUE = "blue"


class Wheel(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A value inside of another."""

    size: int
    colours: frozenset[Colour] = frozenset()

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a wheel has a size")


class Car(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One field of each type."""

    name: str
    wheels: tuple[Wheel, ...] = ()
    cpus: CpuSet = NO_CPUS
    nodes: NodeSet = NO_NODES
    limit: MilliCpus | None = None
    parked: bool = False
    labels: Mapping[str, str] = _NONE
    spares: Mapping[str, Wheel] = _NONE


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
def test_written_values_are_read_back(car: Car) -> None:
    assert from_plain(Car, json.loads(json.dumps(to_plain(car)))) == car


def test_fields_with_their_default_are_left_out() -> None:
    full = Car(
        "a",
        (Wheel(3, frozenset(Colour)), Wheel(0)),
        CpuSet.of(0, 1, 2, 7),
        NodeSet.of(1),
        MilliCpus(0),
        True,
        MappingProxyType({"k": "v"}),
        {"s": Wheel(1)},
    )

    assert to_plain(Car("a")) == {"name": "a"}
    assert to_plain(full) == {
        "name": "a",
        "wheels": ({"size": 3, "colours": ["blue", "red"]}, {"size": 0}),
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
        pytest.param(7, "Expected `object`, got `int`", id="no table at all"),
        pytest.param(
            {}, "Object missing required field `name`", id="a field is missing"
        ),
        pytest.param(
            {"name": None}, "Expected `str`, got `null` - at `$.name`", id="null"
        ),
        pytest.param(
            {"name": "a", "x": 1},
            "Object contains unknown field `x`",
            id="an unknown field",
        ),
        pytest.param(
            {"name": "a", "limit": True},
            "Expected `int | null`, got `bool` - at `$.limit`",
            id="a truth is no number",
        ),
        pytest.param(
            {"name": "a", "limit": 1.5},
            "Expected `int | null`, got `float` - at `$.limit`",
            id="a fraction is no number",
        ),
        pytest.param(
            {"name": "a", "cpus": "3-1"},
            "not a CPU or node list: '3-1' (at '3-1') - at `$.cpus`",
            id="a list that the kernel would refuse",
        ),
        pytest.param(
            {"name": "a", "nodes": 1},
            "Expected `str`, got `int` - at `$.nodes`",
            id="a number in place of a list",
        ),
        pytest.param(
            {"name": "a", "wheels": {}},
            "Expected `array`, got `object` - at `$.wheels`",
            id="a table",
        ),
        pytest.param(
            {"name": "a", "wheels": [{"size": 1}, {"size": 1, "colours": ["green"]}]},
            "Invalid enum value 'green' - at `$.wheels[1].colours[0]`",
            id="a word that is none, deep inside",
        ),
        pytest.param(
            {"name": "a", "wheels": [{"size": -1}]},
            "a wheel has a size - at `$.wheels[0]`",
            id="a value that its class refuses",
        ),
        pytest.param(
            {"name": "a", "spares": {"s": {}}},
            "Object missing required field `size` - at `$.spares[...]`",
            id="a mistake in a table",
        ),
        pytest.param(
            {"name": "a", "labels": []},
            "Expected `object`, got `array` - at `$.labels`",
            id="a list",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_path(data: Any, sentence: str) -> None:
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
    assert from_plain(Car, to_plain(car)) == car
