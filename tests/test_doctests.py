"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import nri_proto
import nri_resmgr


def modules() -> list[str]:
    return [
        module.name
        for package in (nri_proto, nri_resmgr)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if "._gen" not in module.name and not module.name.endswith("__main__")
        if has_examples(module)
    ]


def has_examples(module: pkgutil.ModuleInfo) -> bool:
    """Decide by the text: to look at every docstring of a module takes long."""
    spec = module.module_finder.find_spec(module.name, None)
    return spec is not None and ">>> " in Path(spec.origin or "").read_text("utf-8")


@pytest.mark.parametrize("name", modules())
def test_examples_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
