"""The rule of docs/adr/0007: values are Structs that compare by content."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import is_typeddict

import attrs
import msgspec
import pytest

import nri_resmgr
from nri_resmgr.policy.cpus.index import CpuIndex
from nri_resmgr.policy.topology_aware.pools import PoolTree

# Keys of caches, of which there is one per machine or policy: to compare two by
# content takes longer than is saved.
BY_IDENTITY = {CpuIndex, PoolTree}


def _classes() -> list[type]:
    found: dict[str, type] = {}
    for _, name, _ in pkgutil.walk_packages(nri_resmgr.__path__, "nri_resmgr."):
        module = importlib.import_module(name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == name:
                found[f"{name}.{kind.__qualname__}"] = kind
    return list(found.values())


CLASSES = _classes()


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def is_frozen_attrs(kind: type) -> bool:
    """Return whether instances of an attrs class refuse to be changed."""
    return attrs.has(kind) and kind.__setattr__ is not object.__setattr__


def is_bare(kind: type) -> bool:
    """Return whether a class declares fields that nothing makes an initializer of.

    It was meant as a value, and its decorator or its base is missing.
    """
    declares = [
        one
        for one in inspect.get_annotations(kind).values()
        if not str(one).startswith(("ClassVar", "Final"))
    ]
    made = attrs.has(kind) or issubclass(kind, msgspec.Struct | BaseException)
    is_type = getattr(kind, "_is_protocol", False) or is_typeddict(kind)
    is_abstract = inspect.isabstract(kind)  # a derived class sets them
    is_meant = made or is_type or is_abstract or "__init__" in vars(kind)
    return bool(declares) and not is_meant


def is_by_identity(kind: type) -> bool:
    """Return whether a Struct equals only itself, or can be changed."""
    config = getattr(kind, "__struct_config__", None)
    return config is not None and not (config.eq and config.frozen)


def test_there_are_classes_to_look_at() -> None:
    assert sum(issubclass(kind, msgspec.Struct) for kind in CLASSES) > 300


def test_every_struct_is_frozen_and_compares_by_content() -> None:
    found = {kind for kind in CLASSES if is_by_identity(kind)}

    assert found == BY_IDENTITY


def test_no_value_is_a_frozen_class_of_attrs() -> None:
    assert [_name(kind) for kind in CLASSES if is_frozen_attrs(kind)] == []


def test_no_class_declares_fields_without_an_initializer() -> None:
    assert [_name(kind) for kind in CLASSES if is_bare(kind)] == []


class _Forgotten:
    size: int


@attrs.frozen(eq=False)
class _Identical:
    size: int


class _ByIdentity(msgspec.Struct, frozen=True, eq=False):
    size: int


class _Mutable(msgspec.Struct):
    size: int


class _Right(msgspec.Struct, frozen=True):
    size: int


@pytest.mark.parametrize(
    ("kind", "checks"),
    [
        (_Forgotten, (False, True, False)),
        (_Identical, (True, False, False)),
        (_ByIdentity, (False, False, True)),
        (_Mutable, (False, False, True)),
        (_Right, (False, False, False)),
    ],
)
def test_the_checks_find_violations(
    kind: type, checks: tuple[bool, bool, bool]
) -> None:
    assert (is_frozen_attrs(kind), is_bare(kind), is_by_identity(kind)) == checks
