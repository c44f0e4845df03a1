"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import nri_proto
import nri_resmgr


def modules() -> list[str]:
    return [
        module.name
        for package in (nri_proto, nri_resmgr)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if "._gen" not in module.name and not module.name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
