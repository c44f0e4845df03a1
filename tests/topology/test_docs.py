"""The examples of the documentation and of docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from nri_resmgr.topology.synthetic import parse_spec

PAGE = Path("docs/topology.md")


def test_the_page() -> None:
    failed, tried = doctest.testfile(str(PAGE.resolve()), module_relative=False)

    assert (failed, tried > 5) == (0, True)


@pytest.mark.parametrize(
    "module", ["values.cpuset", "values.quantities", "topology.synthetic"]
)
def test_docstrings(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"nri_resmgr.{module}"))

    assert (failed, tried > 0) == (0, True)


def test_every_spec_of_the_page_is_a_machine() -> None:
    table = PAGE.read_text().split("| machine | spec |")[1].split("\n\n")[0]
    specs = [line.split("`")[1] for line in table.splitlines() if "`" in line]

    assert len([parse_spec(spec).online for spec in specs]) == 11
