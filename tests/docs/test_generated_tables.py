"""The pages have the tables that the code has."""

from __future__ import annotations

import ast

import pytest

from nri_resmgr.app.observing.decision_log import DecisionLog
from tests.docs.generators import FILES, GENERATORS, PAGES
from tests.docs.log_events import components_of_computed, computed
from tests.docs.markdown import merged, read_rows
from tests.docs.regions import UnknownRegion, regions, rewritten

FOUND = {
    name: (page, body)
    for page in FILES
    for name, body in regions(page.read_text(encoding="utf-8")).items()
    if name in GENERATORS
}

# Tables with a column that is written by hand.
_HAND = ("options", "annotations", "event kinds")

_SAMPLES = {
    "preferNewBalloons": ["boolean", "`false`"],
    "minCPUs": ["number, 0 to 65536", "`0`"],
    "componentCreation": ["`all`, `balance-balloons`", "`all`"],
    "loads": ["list of names", "`[]`"],
    "pinMemory": ["boolean", "of the policy"],
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_table_is_as_generated(name: str) -> None:
    page, body = FOUND[name]

    generated = GENERATORS[name](body)

    assert body.strip("\n") == generated, f"run `make docs`: {page.name} is out of date"


@pytest.mark.parametrize(
    "name", [name for name in GENERATORS if name.startswith(_HAND)]
)
def test_every_row_has_its_meaning(name: str) -> None:
    page, body = FOUND[name]

    without = [word for word, cells in read_rows(body).items() if not cells[-1]]
    assert without == [], f"write the meanings of these rows of {page.name}"


def test_options_are_read_from_the_readers() -> None:
    rows = read_rows(FOUND["options of balloonTypes"][1])

    # Of each way to know one: a call, a range, words, names, and the hand-written rest.
    assert {word: rows[word][1:3] for word in _SAMPLES} == _SAMPLES


def test_only_names_of_decisions_are_no_literals() -> None:
    # Those are literals, too, in its table of the kinds of decisions.
    assert {f"nri_resmgr.{one}" for one in components_of_computed()} == {
        DecisionLog.__module__
    }


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('log.info("state.restored", why=why)', []),
        ("log.info(name, why=why)", ["log.info(name, why=why)"]),
        ('log.info(f"state.{verdict}")', ["log.info(f'state.{verdict}')"]),
        ('log.error("a.b" if why else "a.c")', ["log.error('a.b' if why else 'a.c')"]),
        ("log.error(event=name)", ["log.error(event=name)"]),
        ("write = log.warning", ["log.warning"]),
        ("levels.debug(patterns)", []),
    ],
)
def test_a_computed_name_is_found(line: str, found: list[str]) -> None:
    assert [ast.unparse(one) for one in computed(ast.parse(line))] == found


def test_text_around_a_region_is_kept() -> None:
    page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n"

    assert rewritten(page, {"x": lambda old: f"not {old}"}) == (
        "a\n<!-- generated: x -->\n\nnot old\n\n<!-- end -->\nb\n"
    )


def test_writing_twice_is_writing_once() -> None:
    page = PAGES / "annotations.md"
    once = rewritten(page.read_text(encoding="utf-8"), GENERATORS)

    assert rewritten(once, GENERATORS) == once


def test_a_region_without_generator_is_refused() -> None:
    with pytest.raises(UnknownRegion):
        rewritten("<!-- generated: nothing -->\n<!-- end -->", GENERATORS)


def test_prose_by_hand_is_kept_and_rows_follow_the_code() -> None:
    old = "| k | v | why |\n|---|---|---|\n| `b` + | 1 | bees |\n| `gone` | 1 | x |\n"

    new = merged(old, ("k", "v", "why"), {"a": ("2", None), "b": ("3", None)})

    assert new.splitlines()[2:] == ["| `b` + | 3 | bees |", "| `a` | 2 |  |"]
