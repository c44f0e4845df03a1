"""The examples of the documentation do what they say."""

from __future__ import annotations

import doctest
from pathlib import Path
from types import ModuleType

import pytest

from nri_resmgr.policy.cpus import allocate, request

PAGE = Path(__file__).parents[3] / "docs" / "cpu-allocator.md"


def test_the_page_is_right() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("module", [allocate, request])
def test_docstrings_are_right(module: ModuleType) -> None:
    result = doctest.testmod(module, extraglobs=vars(request))

    assert result.attempted
    assert not result.failed
