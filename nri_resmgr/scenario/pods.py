"""Pods as Kubernetes describes them: requests and limits of their containers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.pod_level import PodContainers, completed, inheriting
from nri_resmgr.scenario.rows import ContainerRow, read_amount, read_texts, read_value
from nri_resmgr.scenario.steps import RunPods
from nri_resmgr.topology import HugePages
from nri_resmgr.values import (
    MilliCpus,
    QosClass,
    parse_bytes,
    parse_cpus,
)

_NO_CPU: Final = MilliCpus(0)
_NO_AMOUNTS: Final = ContainerRow()
_PAGES: Final = "hugepages-"
_CONTAINER: Final = (
    *("name", "requests", "limits", "resources", "restartPolicy"),
    *("command", "args", "env"),
)
MOST_REPLICAS: Final = 100_000


def qos_of(containers: Collection[ContainerRow]) -> QosClass:
    """Return the QoS class of a pod, from its own amounts or those of its containers.

    Source:
        Kubernetes, "Pod Quality of Service Classes".
    """
    requests = [(one.request, one.memory) for one in containers]
    limits = [(one.limit, one.memory_limit) for one in containers]
    if not any(map(any, (*requests, *limits))):
        return QosClass.BEST_EFFORT
    if requests == limits and all(map(all, limits)):
        return QosClass.GUARANTEED
    return QosClass.BURSTABLE


def read_run(table: Table) -> RunPods:
    """Read the step ``run``.

    Raises:
        BadSetting: The first mistake.
    """
    own = amounts_of_pod(table)
    containers = table.tables("containers", *_CONTAINER)
    first = table.tables("initContainers", *_CONTAINER)
    about = ContainerRow(
        namespace=table.text("namespace", "") or None,
        pod_labels=read_texts(table, "labels"),
        annotations=read_texts(table, "annotations"),
    )
    replicas = table.number("replicas", 0, MOST_REPLICAS, 1)
    return run_of(table.name("run"), about, (first, containers), replicas, own)


def amounts_of_pod(table: Table) -> ContainerRow | None:
    """Read the ``resources`` of a pod itself; None where it has none.

    Raises:
        BadSetting: The first mistake.
    """
    if not table.rows.get("resources"):
        return None
    found = _given_amounts(table)
    return None if found == _NO_AMOUNTS else found


def run_of(
    name: str,
    about: ContainerRow,
    containers: tuple[tuple[Table, ...], tuple[Table, ...]],
    replicas: int = 1,
    own: ContainerRow | None = None,
) -> RunPods:
    """Return the step that runs a pod; *containers* are the init ones and the others.

    *own* are the amounts of the pod itself, if it has some.

    Raises:
        BadSetting: There is no container, or one has a mistake.
    """
    first, others = containers
    if not others:
        raise BadSetting(f"pod {name}", "no containers")
    rows: dict[str, ContainerRow] = {}
    for table in (*first, *others):
        called = table.name("name")
        if called in rows:
            raise BadSetting(table.at("name"), f"container {called} exists already")
        rows[called] = about.over(_container(table))
    names = [one.name("name") for one in first]
    # With "Always" it is a sidecar, which keeps running.
    once = {one.name("name") for one in first if one.text("restartPolicy") != "Always"}
    if own is not None:
        members = PodContainers(
            [(rows[key], key not in once) for key in names],
            [row for key, row in rows.items() if key not in names],
        )
        own = completed(own, members)
        rows = {key: inheriting(row, own, members) for key, row in rows.items()}
    qos = qos_of(rows.values() if own is None else (own,))
    return RunPods(
        name=name,
        containers={
            key: msgspec.structs.replace(row, qos=qos, request=row.request or _NO_CPU)
            for key, row in rows.items()
        },
        once=frozenset(once),
        replicas=replicas,
    )


def _container(table: Table) -> ContainerRow:
    return msgspec.structs.replace(
        _amounts(table),
        args=(*table.texts("command"), *table.texts("args")) or None,
        env=dict(_environment(table)) or None,
    )


def _environment(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the variables with a value; others have it in an object of the cluster."""
    for row in table.tables("env", "name", "value", "valueFrom"):
        if "value" in row.rows:
            yield row.name("name"), row.text("value")


def _amounts(table: Table) -> ContainerRow:
    found = _given_amounts(table)
    # A limit without a request is the request as well.
    return msgspec.structs.replace(
        found,
        request=found.limit if found.request is None else found.request,
        memory=found.memory_limit if found.memory is None else found.memory,
    )


def _given_amounts(table: Table) -> ContainerRow:
    # Kubernetes has both below "resources"; a scenario may omit that key.
    holder = table
    if "resources" in table.rows:
        holder = table.table("resources", "requests", "limits", "claims")
    requests, limits = holder.open_table("requests"), holder.open_table("limits")
    return ContainerRow(
        request=read_amount(requests, "cpu", parse_cpus),
        limit=read_amount(limits, "cpu", parse_cpus),
        memory=read_amount(requests, "memory", parse_bytes),
        memory_limit=read_amount(limits, "memory", parse_bytes),
        hugepages=_hugepages(limits) or None,
    )


def _hugepages(limits: Table) -> tuple[HugePages, ...]:
    found = []
    for key in limits.rows:
        if key.startswith(_PAGES):
            parse_size = partial(parse_bytes, key.removeprefix(_PAGES))
            size = read_value(limits, key, parse_size)
            if count := (read_amount(limits, key, parse_bytes) or 0) // max(size, 1):
                found.append(HugePages(size, count))
    return tuple(found)
