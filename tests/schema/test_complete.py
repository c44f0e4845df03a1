"""Each option of each kind is in the schemas, with its type and its meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.schema import ANY, Form, Shape, shape_of
from nri_resmgr.schema.meanings import OF_ALL, OF_KIND, meaning_of
from nri_resmgr.schema.samples import FULL
from nri_resmgr.schema.shape import Default


def options(shape: Shape, path: str = "") -> Iterator[tuple[str, Shape]]:
    """Yield all options below a place, with their paths as in the meanings."""
    for key, one in shape.keys.items():
        at = f"{path}.{key}" if path else key
        yield at, one
        yield from options(one, at)
    if shape.items:
        is_open = shape.form is Form.OPEN_MAPPING
        yield from options(shape.items, f"{path}.{ANY}" if is_open else f"{path}[]")


def test_there_is_a_sample_of_each_kind() -> None:
    assert FULL.keys() == BUILT_IN.keys()


@pytest.mark.parametrize("kind", FULL)
def test_the_samples_reach_each_option(kind: str) -> None:
    found = [path for path, one in options(shape_of(kind)) if one.form is Form.ANYTHING]

    assert found == [], "a reader has these keys; write a value of each into samples.py"


@pytest.mark.parametrize("kind", FULL)
def test_each_option_has_its_meaning(kind: str) -> None:
    found = [path for path, _ in options(shape_of(kind)) if not meaning_of(kind, path)]

    assert found == [], "write what these options mean into meanings.py"


def test_no_meaning_belongs_to_a_removed_option() -> None:
    known = {kind: {path for path, _ in options(shape_of(kind))} for kind in FULL}
    everywhere = set().union(*known.values())
    # The part of any key, and any key of a mapping.
    parents = {path.rpartition(".")[0] for path in everywhere}

    gone = {
        path
        for path in OF_ALL
        if path not in everywhere
        and path.removesuffix(".*") not in everywhere | parents
    }
    assert gone == set()
    assert {
        (kind, path) for kind in OF_KIND for path in OF_KIND[kind].keys() - known[kind]
    } == set()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("minCPUs",), (Form.NUMBER, 0, 65536, (), 0)),
        (("maxCPUs",), (Form.NUMBER, -65536, 65536, (), 0)),
        (("componentCreation",), (Form.CHOICE, None, None, 2, "all")),
        (("pinMemory",), (Form.FLAG, None, None, (), None)),
        (("preferNewBalloons",), (Form.FLAG, None, None, (), False)),
        (("irqClaim", ANY), (Form.RAW, None, None, (), None)),
    ],
)
def test_an_option_is_as_its_reader_reads_it(
    path: tuple[str, ...],
    expected: tuple[Form, int | None, int | None, object, Default],
) -> None:
    found = shape_of("BalloonsPolicy").at("balloonTypes", ANY, *path)

    choices = len(found.choices) or ()
    assert (found.form, found.low, found.high, choices, found.default) == expected


def test_keys_that_every_mapping_needs_are_required() -> None:
    balloons, pods = shape_of("BalloonsPolicy"), shape_of("PodpoolsPolicy")

    assert balloons.at("loadClasses", ANY).required == ("name", "level")
    # Not of the built-in pool.
    assert pods.at("pools", ANY).required == ("name",)


def test_a_missing_part_of_a_shape_is_an_error() -> None:
    with pytest.raises(KeyError):
        shape_of("NonePolicy").at("miscLimits", ANY)
