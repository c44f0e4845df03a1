"""Classes that attrs looks at late are classes of attrs all the same."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import pytest

from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

ItemT = TypeVar("ItemT")


def _as_texts(items: object) -> tuple[str, ...]:
    assert isinstance(items, list | tuple)
    return tuple(map(str, items))


@frozen
class Ours(ByContent):
    """Everything that a class of ours may have."""

    a: int
    texts: tuple[str, ...] = attrs.field(default=(), converter=_as_texts)
    doubled: int = attrs.field(init=False)
    KIND: ClassVar[str] = "ours"

    @doubled.default
    def _twice(self) -> int:
        return 2 * self.a

    def __attrs_post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)


@frozen
class Child(Ours, Generic[ItemT]):
    """One field more."""

    item: ItemT | None = None

    def __repr__(self) -> str:
        return "Child of " + super().__repr__()


@frozen(kw_only=True)
class Named(ByContent):
    """By name only."""

    a: int = 1


@attrs.frozen
class Theirs:
    """What attrs makes of the fields of `Ours`."""

    a: int
    texts: tuple[str, ...] = attrs.field(default=(), converter=_as_texts)
    doubled: int = attrs.field(init=False)


def facts(kind: Any) -> list[tuple[object, ...]]:
    return [
        (one.name, one.type, one.init, one.kw_only, one.converter, one.alias)
        for one in attrs.fields(kind)
    ]


def test_attrs_knows_the_fields_before_there_is_a_value() -> None:
    @frozen
    class Fresh(ByContent):
        """Nobody has made one."""

        a: int
        texts: tuple[str, ...] = attrs.field(default=(), converter=_as_texts)
        doubled: int = attrs.field(init=False)

    assert facts(Fresh) == facts(Theirs)
    assert attrs.has(Fresh)


def test_fields_defaults_and_converters_are_in_force() -> None:
    value = Ours(1, [2, 3])

    assert (value.a, value.texts, value.doubled, value.KIND) == (
        1,
        ("2", "3"),
        2,
        "ours",
    )
    assert value == Ours(a=1, texts=("2", "3"))
    assert attrs.evolve(value, a=4) == Ours(4, ["2", "3"])


def test_a_child_has_the_fields_of_its_base_first() -> None:
    child = Child(1, [], "x")

    assert repr(child) == "Child of Child(a=1, texts=(), doubled=2, item='x')"
    assert child != Ours(1)


def test_the_base_of_a_class_without_values_matches_by_place() -> None:
    match Child(7, ["x"]):
        case Ours(a, texts):
            assert (a, texts) == (7, ("x",))
        case _:
            raise AssertionError


BAD: dict[str, Callable[[], object]] = {
    "a value that the class refuses": lambda: Ours(-1),
    "a missing one": lambda: Ours(texts=[]),  # type: ignore[call-arg] # on purpose
    "a field that it computes": lambda: Ours(1, [], 3),  # type: ignore[call-arg] # on purpose
    "by place where names are asked for": lambda: Named(1),  # type: ignore[call-arg] # on purpose
}


@pytest.mark.parametrize("what", BAD)
def test_no_value_is_made_of(what: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        BAD[what]()


def test_a_value_cannot_be_changed() -> None:
    value = Ours(1)

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.a = 2  # type: ignore[misc] # on purpose
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del value.a
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(copy.copy, id="copied"),
        pytest.param(copy.deepcopy, id="copied with all in it"),
        pytest.param(lambda value: pickle.loads(pickle.dumps(value)), id="pickled"),  # noqa: S301 - our own bytes
        pytest.param(lambda value: weakref.ref(value)(), id="referred to weakly"),
    ],
)
def test_a_value_stays_itself(again: Callable[[Ours], Ours]) -> None:
    value = Child(1, ["x"], 3)

    assert again(value) == value


@frozen
class Made(ByContent):
    """Every way to come by the content of a field."""

    a: int
    given: int = 5
    texts: tuple[str, ...] = attrs.field(factory=list, converter=_as_texts)
    doubled: int = attrs.field()
    fixed: int = attrs.field(default=3, init=False)
    kept: list[int] = attrs.field(factory=list, init=False)

    @doubled.default
    def _twice(self) -> int:
        return 2 * self.a


@attrs.frozen
class MadeByAttrs:
    """The same by attrs alone."""

    a: int
    given: int = 5
    texts: tuple[str, ...] = attrs.field(factory=list, converter=_as_texts)
    doubled: int = attrs.field()
    fixed: int = attrs.field(default=3, init=False)
    kept: list[int] = attrs.field(factory=list, init=False)

    @doubled.default
    def _twice(self) -> int:
        return 2 * self.a


@pytest.mark.parametrize(
    "named",
    [
        pytest.param({}, id="nothing that may be left out"),
        pytest.param({"given": 6, "texts": [1]}, id="plain and converted ones"),
        pytest.param({"doubled": 7}, id="one that would be made of others"),
    ],
)
def test_each_field_gets_what_attrs_would_give_it(named: dict[str, Any]) -> None:
    assert attrs.asdict(Made(1, **named)) == attrs.asdict(MadeByAttrs(1, **named))
    assert Made.__match_args__ == MadeByAttrs.__match_args__


def test_a_value_is_of_its_class_and_shares_no_list() -> None:
    one, two = Made(1), Made(1)

    assert type(one) is Made
    assert one.kept is not two.kept
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.a = 2  # type: ignore[misc] # on purpose


def test_a_class_that_attrs_has_not_looked_at_matches_what_is_given_by_place() -> None:
    @frozen
    class Fresh(ByContent):
        """Nobody has asked for its fields."""

        fixed: int = attrs.field(default=3, init=False)
        a: int = 1

    Fresh()

    assert Fresh.__match_args__ == ("a",)
