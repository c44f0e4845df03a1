"""Finds kinds of policies by name: built-in ones, then those of installed packages.

Each kind is declared as an entry point in the group `GROUP`: its name is the kind of
the configuration document, its object a `PolicyKind`. The built-in ones are declared in
the same way by our own package. They are in a table here as well, because importing
``importlib.metadata`` takes 50 ms of each start and scanning the installed packages
another 5 ms, which only documents of other kinds should cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.policies.kind import PolicyKind
from nri_resmgr.values.closest import closest

if TYPE_CHECKING:  # see the module's docstring
    from importlib.metadata import EntryPoint

GROUP: Final = "nri_resmgr.policies"

# By name and not by import: a start imports only the kind of its document.
BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BalloonsPolicy": "nri_resmgr.policies.balloons:KIND",
        "DynamicPoolsPolicy": "nri_resmgr.policies.dynamic_pools:KIND",
        "NonePolicy": "nri_resmgr.policies.none:KIND",
        "PodpoolsPolicy": "nri_resmgr.policies.podpools:KIND",
        "StaticPlusPolicy": "nri_resmgr.policies.static_plus:KIND",
        "StaticPoolsPolicy": "nri_resmgr.policies.static_pools:KIND",
        "StaticPolicy": "nri_resmgr.policies.static:KIND",
        "TopologyAwarePolicy": "nri_resmgr.policies.topology_aware:KIND",
    }
)

_loaded: Final[dict[str, PolicyKind[PolicyConfig]]] = {}


def known_kinds() -> tuple[str, ...]:
    """Return the names of all kinds, sorted; loads none of them."""
    return tuple(sorted({*BUILT_IN, *(one.name for one in _installed())}))


def find_kind(name: str, path: str = "$.kind") -> PolicyKind[PolicyConfig]:
    """Return a kind by its name.

    Args:
        name: As in a document.
        path: Of the name in that document, for errors.

    Raises:
        BadSetting: There is none of this name, or it cannot be loaded.
    """
    if (known := _loaded.get(name)) is not None:
        return known
    if target := BUILT_IN.get(name):
        module, _, attribute = target.partition(":")
        found: PolicyKind[PolicyConfig] = getattr(import_module(module), attribute)
    else:
        found = _load(name, path)
    _loaded[name] = found
    return found


def _load(name: str, path: str) -> PolicyKind[PolicyConfig]:
    # Only the requested kind is loaded: a broken package does not affect nodes that do
    # not use it.
    points = [one for one in _installed() if one.name == name]
    if not points:
        raise BadSetting(path, _unknown(name))
    origins = sorted({_origin(one) for one in points})
    if len(origins) > 1:
        raise BadSetting(path, f"{name} is in several packages: {', '.join(origins)}")
    where = f"{name} of {origins[0]}"
    try:
        found = points[0].load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise BadSetting(path, f"{where} cannot be loaded: {why}") from error
    if not isinstance(found, PolicyKind):
        raise BadSetting(path, f"{where} is not a PolicyKind: {points[0].value}")
    if found.name != name:
        raise BadSetting(path, f"{where} has another name: {found.name}")
    return found


def _unknown(name: str) -> str:
    known = known_kinds()
    close = closest(name, known)
    hint = f"did you mean {close}? " if close else ""
    # List all of them even so: the package of the wanted one may not be installed.
    return f"unknown value, {hint}expected {' or '.join(known)}"


def _installed() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # late: see the module's docstring

    return [one for one in entry_points(group=GROUP) if one.name not in BUILT_IN]


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
