"""Which lines are made: rules by component, and what they come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.log.levels import LEVELS, MOST_RULES, BadLevel, LogLevels

NAMES = ("app.engine", "app.report", "stub", "stub.link", "stubborn")
PATTERNS = ("*", "app", "app.*", "stub", "s*", "*.link", "app.[er]*", "none")

# Written down by hand: what each pattern is about.
MEANT = {
    "*": set(NAMES),
    "app": {"app.engine", "app.report"},
    "app.*": {"app.engine", "app.report"},
    "stub": {"stub", "stub.link"},
    "s*": {"stub", "stub.link", "stubborn"},
    "*.link": {"stub.link"},
    "app.[er]*": {"app.engine", "app.report"},
    "none": set[str](),
}


@given(st.lists(st.tuples(st.sampled_from(PATTERNS), st.sampled_from(list(LEVELS)))))
def test_the_last_rule_that_is_about_a_component_decides(
    rules: list[tuple[str, str]],
) -> None:
    levels, expected = LogLevels(), dict.fromkeys(NAMES, "debug")
    components = [levels.component(f"nri_resmgr.{name}") for name in NAMES]

    for pattern, level in rules:
        levels.set(pattern, level)
        expected |= dict.fromkeys(MEANT[pattern], level)

    assert levels.as_data()["components"] == expected
    assert {one.name: one.least for one in components} == {
        name: LEVELS[level] for name, level in expected.items()
    }


def test_a_component_that_comes_later_goes_by_the_same_rules() -> None:
    levels = LogLevels()
    levels.set("*", "error")
    levels.set("app", "info")

    assert levels.component("nri_resmgr.app.engine").least == LEVELS["info"]
    assert levels.component("plugins.mine").least == LEVELS["error"]


def test_debug_of_everything_hides_the_rules_and_gives_them_back() -> None:
    levels = LogLevels()
    levels.component("nri_resmgr.app.engine")
    levels.set("*", "error")
    before = levels.as_data()

    assert levels.toggle_debug()
    assert levels.as_data() == {
        "debugAll": True,
        "rules": {"*": "error"},
        "components": {"app.engine": "debug"},
    }
    assert not levels.toggle_debug()
    assert levels.as_data() == before


def test_the_rule_for_all_drops_the_others() -> None:
    levels = LogLevels()
    levels.component("nri_resmgr.app.engine")
    levels.set("*", "warning")
    before = levels.as_data()
    levels.debug(["app", "stub"])
    levels.set("*", "warning")

    assert levels.as_data() == before


@pytest.mark.parametrize(
    ("pattern", "level", "sentence"),
    [
        ("*", "loud", "log level: 'loud': expected one of debug, info, warning, error"),
        ("", "info", "log level: '': not a pattern of components, such as stub.*"),
        (
            "a b",
            "none",
            "log level: 'none': expected one of debug, info, warning, error",
        ),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(
    pattern: str, level: str, sentence: str
) -> None:
    levels = LogLevels()
    before = levels.as_data()

    with pytest.raises(BadLevel) as raised:
        levels.set(pattern, level)

    assert (str(raised.value), levels.as_data()) == (sentence, before)


def test_rules_are_bounded_and_a_rule_for_all_makes_room() -> None:
    levels = LogLevels()
    with pytest.raises(BadLevel, match="set \\* to drop them"):
        levels.debug(f"x{number}" for number in range(MOST_RULES))
    levels.set("*", "info")
    levels.set("app", "debug")

    assert levels.as_data()["rules"] == {"*": "info", "app": "debug"}
