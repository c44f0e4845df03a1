"""Configurations and machines give the schemata that were worked out by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.classes.rdt.cases import CASES, Case, cases


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_groups_have_the_schemata_of_the_case(case: Case) -> None:
    assert case.outcome() == case.expected()


def test_every_file_begins_with_a_sentence() -> None:
    silent = [
        path.name
        for path in CASES.glob("*.yaml")
        if not path.read_text().startswith("# ")
    ]

    assert silent == []


def test_no_two_cases_have_one_name() -> None:
    names = Counter(case.name for case in cases())

    assert [name for name, count in names.items() if count > 1] == []
