"""Reads adjustments from the cluster's objects, for one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.annotations.affinities import read_expression
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.policy.affinity import Expression
from nri_resmgr.spool import ClusterObject
from nri_resmgr.values import Bytes, InputError, MilliCpus
from nri_resmgr.values.quantities import parse_bytes, parse_cpus

KIND: Final = "Adjustment"

MOST: Final = 200
"""Adjustments for one node. Each container is compared with each of them, and only one
may apply to it.
"""

_API_VERSIONS: Final = ("criresmgr.intel.com/v1alpha1", "config.nri/v1alpha1")
_ANY: Final = "*"

_Amount = TypeVar("_Amount", MilliCpus, Bytes)


class ReadAdjustment(msgspec.Struct, frozen=True):
    """An object of the cluster, and what it means here.

    Attributes:
        adjustment: None if it is invalid, or for other nodes.
        why: The mistake; empty for none.
    """

    object: ClusterObject
    adjustment: Adjustment | None = None
    why: str = ""


def read_adjustments(text: str, node: str) -> tuple[ReadAdjustment, ...]:
    """Read a list of objects, each on its own.

    Args:
        text: YAML.
        node: The name of this node.

    Raises:
        BadSyntax: The text is not YAML.
        BadSetting: It is no list of objects with unique names, or too many of them are
            for this node.
    """
    items = parse_yaml(text)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise BadSetting("$", "expected a list of adjustments")
    found = tuple(_read(item, f"$[{at}]", node) for at, item in enumerate(items))
    names = Counter(one.object.name for one in found)
    for name, number in names.items():
        if number > 1:
            raise BadSetting("$", f"two adjustments have the name {name!r}")
    here = sum(one.adjustment is not None for one in found)
    if here > MOST:
        why = f"{here} adjustments are for this node, expected at most {MOST}"
        raise BadSetting("$", why)
    return found


def _read(item: object, path: str, node: str) -> ReadAdjustment:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise BadSetting(f"{path}.metadata.name", "missing, expected text")
    generation = metadata.get("generation")
    named = ClusterObject(
        KIND,
        metadata["name"],
        str(metadata.get("namespace") or ""),
        str(metadata.get("uid") or ""),
        generation if isinstance(generation, int) else 0,
    )
    try:
        return ReadAdjustment(named, _adjustment(item, named.name, node))
    except InputError as error:
        return ReadAdjustment(named, why=str(error))


def _adjustment(item: object, name: str, node: str) -> Adjustment | None:
    top = Table.read(item, "apiVersion", "kind", "metadata", "spec", "status")
    top.choice("apiVersion", _API_VERSIONS, "")
    top.choice("kind", (KIND,), "")
    spec = top.table("spec", "scope", "resources", "classes", "toptierLimit")
    spec.require("scope", "a list of nodes and containers")
    scopes = [
        (one.texts("nodes"), _expressions(one))
        for one in spec.tables("scope", "nodes", "containers")
    ]
    resources = spec.table("resources", "requests", "limits")
    requests = resources.table("requests", "cpu", "memory")
    limits = resources.table("limits", "cpu", "memory")
    request, limit = _amounts(requests, limits, "cpu", parse_cpus)
    memory, memory_limit = _amounts(requests, limits, "memory", parse_bytes)
    classes = spec.table("classes", "rdt", "blockio")
    here = [found for nodes, found in scopes if _is_here(nodes, node)]
    if not here:
        return None
    return Adjustment(
        name=name,
        scope=tuple(one for found in here for one in found),
        everywhere=any(not found for found in here),
        request=request,
        limit=limit,
        memory_request=memory,
        memory_limit=memory_limit,
        rdt_class=classes.text("rdt") or None,
        blockio_class=classes.text("blockio") or None,
        top_tier_limit=_amount(spec, "toptierLimit", parse_bytes),
    )


def _expressions(scope: Table) -> tuple[Expression, ...]:
    rows = scope.tables("containers", "key", "operator", "values")
    return tuple(read_expression(one) for one in rows)


def _is_here(nodes: tuple[str, ...], node: str) -> bool:
    return not nodes or any(
        node.startswith(one[:-1]) if one.endswith(_ANY) else node == one
        for one in nodes
    )


def _amounts(
    requests: Table, limits: Table, key: str, parse: Callable[[str], _Amount]
) -> tuple[_Amount | None, _Amount | None]:
    request, limit = _amount(requests, key, parse), _amount(limits, key, parse)
    if limit is not None and request is not None and request > limit:
        raise BadSetting(requests.at(key), f"exceeds {limits.at(key)}")
    # As in Kubernetes, a limit alone is the request as well.
    return (limit if request is None else request), limit


def _amount(table: Table, key: str, parse: Callable[[str], _Amount]) -> _Amount | None:
    text = table.amount(key)
    if text is None:
        return None
    try:
        return parse(text)
    except InputError as error:
        raise BadSetting(table.at(key), str(error)) from None
