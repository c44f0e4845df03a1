"""Results of builders that are thrown away, and builders that take a mapping."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from types import MappingProxyType

import pytest

from nri_resmgr.stub import (
    ContainerAdjustment,
    ContainerUpdate,
    DeviceCgroupRule,
    DiscardedResult,
    Hooks,
)

NEW = ContainerAdjustment()
UPDATE = ContainerUpdate("c")
PAIRS = MappingProxyType({"a": "1", "b": "2"})


# Each has its mistake in its second line.
def as_in_go() -> None:
    NEW.set_env("A", "1")


def in_a_loop() -> None:
    for name in ("A", "B"):
        NEW.set_annotation(name, "1")


def at_the_end_of_a_chain() -> None:
    NEW.set_cpus("0").replace_env("A", "1")


def with_a_mapping() -> None:
    NEW.set_sysctl({"a": "1"})


def with_unpacked_arguments() -> None:
    NEW.set_env(*("A", "1"))


def over_several_lines() -> None:
    NEW.set_unified(
        "memory.high",
        "1",
    )


def of_a_rule() -> None:
    NEW.add_device_rule(DeviceCgroupRule())


def of_hooks() -> None:
    NEW.add_hooks(Hooks())


def of_an_update() -> None:
    UPDATE.set_cpu_shares(2)


def of_a_mark() -> None:
    UPDATE.ignoring_failure()


@pytest.mark.parametrize(
    ("mistake", "builder", "line"),
    [
        pytest.param(as_in_go, "set_env", 1, id="as in Go"),
        pytest.param(in_a_loop, "set_annotation", 2, id="in a loop"),
        pytest.param(at_the_end_of_a_chain, "replace_env", 1, id="a chain"),
        pytest.param(with_a_mapping, "set_sysctl", 1, id="with a mapping"),
        pytest.param(with_unpacked_arguments, "set_env", 1, id="unpacked arguments"),
        pytest.param(over_several_lines, "set_unified", 1, id="over several lines"),
        pytest.param(of_a_rule, "add_device_rule", 1, id="a rule"),
        pytest.param(of_hooks, "add_hooks", 1, id="hooks"),
        pytest.param(of_an_update, "set_cpu_shares", 1, id="an update"),
        pytest.param(of_a_mark, "ignoring_failure", 1, id="a mark of an update"),
    ],
)
def test_a_discarded_result_is_a_warning_with_its_line(
    mistake: Callable[[], None], builder: str, line: int
) -> None:
    with pytest.warns(DiscardedResult) as found:
        mistake()

    _, first = inspect.getsourcelines(mistake)
    assert f"the result of {builder}() is thrown away" in str(found[0].message)
    assert (found[0].filename, found[0].lineno) == (__file__, first + line)


async def test_a_coroutine_is_looked_at_too() -> None:
    with pytest.warns(DiscardedResult):
        NEW.set_env("A", "1")


def passed_on(kept: list[ContainerUpdate]) -> ContainerAdjustment:
    """Use results in all ways that end in a discarded one of another call."""
    kept.append(UPDATE.set_cpus("0"))
    kept.extend(map(ContainerUpdate.ignoring_failure, [UPDATE]))
    kept.extend(one.set_mems("0") for one in (UPDATE,))
    adjustment = NEW
    for name in ("A", "B"):
        adjustment = adjustment.set_env(name, "1")
    return adjustment.set_annotation("a", "1").set_args(["true"])


def test_a_result_that_is_used_is_no_mistake() -> None:
    kept: list[ContainerUpdate] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adjustment = passed_on(kept)

    assert ([item.key for item in adjustment.env], len(kept)) == (["A", "B"], 3)


def test_a_line_is_shown_once() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        in_a_loop()

    assert len(shown) == 1


def test_a_mapping_sets_each_key() -> None:
    made = NEW.set_env(PAIRS).set_annotation(PAIRS).set_sysctl(PAIRS).set_unified(PAIRS)

    assert made == (
        NEW.set_env("a", "1")
        .set_env("b", "2")
        .set_annotation("a", "1")
        .set_annotation("b", "2")
        .set_sysctl("a", "1")
        .set_sysctl("b", "2")
        .set_unified("a", "1")
        .set_unified("b", "2")
    )
    assert NEW.set_hugepage_limit({"2MB": 1}) == NEW.set_hugepage_limit("2MB", 1)
    assert NEW.set_env({}) == NEW


def test_a_mapping_replaces_each_key() -> None:
    made = NEW.replace_env(PAIRS).replace_annotation(PAIRS).replace_sysctl(PAIRS)

    assert made == (
        NEW.replace_env("a", "1")
        .replace_env("b", "2")
        .replace_annotation("a", "1")
        .replace_annotation("b", "2")
        .replace_sysctl("a", "1")
        .replace_sysctl("b", "2")
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("A",), id="a key without a value"),
        pytest.param(({"A": "1"}, "2"), id="a mapping and a value"),
        pytest.param(([("A", "1")],), id="pairs"),
    ],
)
def test_there_is_a_key_and_a_value_or_a_mapping(arguments: tuple[str, str]) -> None:
    with pytest.raises(TypeError, match=r"set_env\(\) takes a key and its value, or"):
        NEW.set_env(*arguments)
