"""Reads what of the node the agent publishes to schedulers, in ``agent``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nri_resmgr.config.policy_config import AGENT, NodeTopologyUse
from nri_resmgr.config.table import Table

SHOW_CONTAINERS: Final = "showContainersInNrt"
"""Of balloons, and of a type of them."""

_PUBLISH: Final = "nodeResourceTopology"
_ZONES: Final = "nodeResourceTopologyZones"
_FINGERPRINT: Final = "nodeResourceTopologyFingerprint"
_FORCE: Final = "nodeResourceTopologyForce"

POD_RESOURCES: Final = "podResourceAPI"
"""Of documents of nri-plugins' kinds."""

_NODES: Final = "nodes"
_POOLS: Final = "pools"


def read_node_topology(spec: Table, *others: str) -> NodeTopologyUse | None:
    """Read a document that has ``agent``; None where nothing is published.

    Containers are a part of their balloons, so that a document of nri-plugins which
    shows them publishes these.

    Args:
        spec: Of a document of any kind.
        others: Keys that are read elsewhere.

    Raises:
        BadSetting: A setting is not valid.
    """
    table, shown = _agent(spec, *others), _shown_types(spec)
    show_all = spec.rows.get(SHOW_CONTAINERS) is True
    default = _POOLS if show_all or shown else _NODES
    use = NodeTopologyUse(
        pools=table.choice(_ZONES, (_NODES, _POOLS), default) == _POOLS,
        containers=show_all,
        container_types=shown,
        fingerprint=table.flag(_FINGERPRINT),
        force=table.flag(_FORCE),
    )
    return use if table.flag(_PUBLISH) else None


def read_agent(spec: Table, *others: str) -> dict[str, Any]:
    """Read ``agent`` into fields of `PolicyConfig`.

    Unlike in nri-plugins the kubelet is asked for the devices of all containers where
    the document does not say.

    Raises:
        BadSetting: A setting is not valid.
    """
    found: dict[str, Any] = {"node_topology": read_node_topology(spec, *others)}
    if POD_RESOURCES in others:
        asks = _agent(spec, *others).flag(POD_RESOURCES, default=True)
        found["pod_resources"] = asks
    return found


def unshown_containers(spec: Table) -> Iterator[str]:
    """Yield the paths at which balloons ask to show what is not published."""
    shows_all = spec.flag(SHOW_CONTAINERS)
    asks = AGENT in spec.rows
    use = read_node_topology(spec, POD_RESOURCES) if asks else None
    if use is not None and use.pools:
        return
    if shows_all:
        yield spec.at(SHOW_CONTAINERS)
    for row in spec.open_rows("balloonTypes"):
        if row.rows.get(SHOW_CONTAINERS):
            yield row.at(SHOW_CONTAINERS)


def _agent(spec: Table, *others: str) -> Table:
    return spec.table(AGENT, _PUBLISH, _ZONES, _FINGERPRINT, _FORCE, *others)


def _shown_types(spec: Table) -> tuple[str, ...]:
    # Only balloons have these, whose reader has validated them or will.
    rows = spec.rows.get("balloonTypes")
    found = rows if isinstance(rows, list) else ()
    return tuple(
        str(row.get("name"))
        for row in found
        if isinstance(row, dict) and row.get(SHOW_CONTAINERS) is True
    )
