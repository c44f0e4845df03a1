"""The tables of names that programs of others may import."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Final

from tests.docs.markdown import code, escaped, table
from tests.docs.regions import Generator

MODULES: Final = (
    "nri_resmgr.stub",
    "nri_resmgr.sdk.settings",
    "nri_resmgr.sdk.annotations",
    "nri_resmgr.sdk.requests",
    "nri_resmgr.sdk.store",
    "nri_resmgr.testing",
    "nri_proto",
)
_TITLE: Final = "names of "


def public_names() -> Mapping[str, Generator]:
    """Return the generators, by the names of their regions."""
    return {f"{_TITLE}{module}": _generator(module) for module in MODULES}


def _generator(module: str) -> Generator:
    def names(_: str) -> str:
        found = importlib.import_module(module)
        rows = [_row(name, getattr(found, name)) for name in sorted(found.__all__)]
        return table(("name", ""), rows)

    return names


def _row(name: str, value: object) -> tuple[str, str]:
    if inspect.isfunction(value):
        return code(f"{name}({_parameters(value)})"), _first_sentence(value)
    if inspect.isclass(value):
        return code(name), _first_sentence(value)
    if inspect.ismodule(value):
        return code(name), "Module."
    return code(name), "Constant or type."


def _parameters(function: object) -> str:
    """List the names of parameters; those after a star are keywords."""
    assert callable(function)
    words = []
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            words.append(f"*{one.name}")
        elif one.kind is one.KEYWORD_ONLY and not any("*" in word for word in words):
            words += ["*", one.name]
        else:
            words.append(one.name)
    return ", ".join(words)


def _first_sentence(value: object) -> str:
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    sentence, dot, _ = text.partition(". ")
    return escaped(f"{sentence}." if dot else text).replace("``", "`")
