"""Pods as Kubernetes describes them: requests and limits of their containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.rows import ContainerRow, Texts, read_texts
from nri_resmgr.scenario.steps import RunPods
from nri_resmgr.topology import HugePages
from nri_resmgr.values import (
    Bytes,
    InputError,
    MilliCpus,
    QosClass,
    parse_bytes,
    parse_cpus,
)

_T = TypeVar("_T")

_PAGES: Final = "hugepages-"
_CONTAINER: Final = ("name", "requests", "limits", "resources", "restartPolicy")
_MOST_REPLICAS: Final = 100_000


class Amounts(msgspec.Struct, frozen=True):
    """Requests and limits of a container; None where it has none."""

    cpu: MilliCpus | None = None
    cpu_limit: MilliCpus | None = None
    memory: Bytes | None = None
    memory_limit: Bytes | None = None
    hugepages: tuple[HugePages, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no CPU or memory request or limit."""
        return not any((self.cpu, self.cpu_limit, self.memory, self.memory_limit))

    @property
    def is_guaranteed(self) -> bool:
        """Whether its CPU and memory limits equal its requests."""
        limits = self.cpu_limit, self.memory_limit
        return all(limits) and (self.cpu, self.memory) == limits


def qos_of(containers: Mapping[str, Amounts]) -> QosClass:
    """Return the QoS class of a pod.

    Source:
        Kubernetes, "Pod Quality of Service Classes".
    """
    if all(one.is_empty for one in containers.values()):
        return QosClass.BEST_EFFORT
    if all(one.is_guaranteed for one in containers.values()):
        return QosClass.GUARANTEED
    return QosClass.BURSTABLE


def read_run(table: Table) -> RunPods:
    """Read the step ``run``.

    Raises:
        BadSetting: The first mistake.
    """
    containers = table.tables("containers", *_CONTAINER)
    first = table.tables("initContainers", *_CONTAINER)
    about = ContainerRow(
        namespace=table.text("namespace", "") or None,
        pod_labels=read_texts(table, "labels"),
        annotations=read_texts(table, "annotations"),
    )
    replicas = table.number("replicas", 0, _MOST_REPLICAS, 1)
    return run_of(table.name("run"), about, (first, containers), replicas)


def run_of(
    name: str,
    about: ContainerRow,
    containers: tuple[tuple[Table, ...], tuple[Table, ...]],
    replicas: int = 1,
) -> RunPods:
    """Return the step that runs a pod.

    Args:
        name: Name of the pods.
        about: Namespace, labels and annotations of the pod.
        containers: Init containers, then the others.
        replicas: Number of pods.

    Raises:
        BadSetting: There is no container, or one has a mistake.
    """
    first, others = containers
    if not others:
        raise BadSetting(f"pod {name}", "no containers")
    amounts: dict[str, Amounts] = {}
    for table in (*first, *others):
        called = table.name("name")
        if called in amounts:
            raise BadSetting(table.at("name"), f"container {called} exists already")
        amounts[called] = _amounts(table)
    qos = qos_of(amounts)
    # With "Always" it is a sidecar, which keeps running.
    once = (one for one in first if one.text("restartPolicy", "") != "Always")
    return RunPods(
        name=name,
        containers={key: _row(one, qos, about) for key, one in amounts.items()},
        once=frozenset(one.name("name") for one in once),
        replicas=replicas,
    )


def about_pod(
    namespace: str | None, labels: Texts | None, annotations: Texts | None
) -> ContainerRow:
    """Return a row with the namespace, labels and annotations of a pod."""
    return ContainerRow(namespace=namespace, pod_labels=labels, annotations=annotations)


def _row(amounts: Amounts, qos: QosClass, about: ContainerRow) -> ContainerRow:
    row = ContainerRow(
        qos=qos,
        request=amounts.cpu or MilliCpus(0),
        limit=amounts.cpu_limit,
        memory=amounts.memory,
        memory_limit=amounts.memory_limit,
        hugepages=amounts.hugepages or None,
    )
    return about.over(row)


def _amounts(table: Table) -> Amounts:
    # Kubernetes has both below "resources"; a scenario may omit that key.
    holder = table
    if "resources" in table.rows:
        holder = table.table("resources", "requests", "limits", "claims")
    requests, limits = holder.open_table("requests"), holder.open_table("limits")
    cpu_limit = _quantity(limits, "cpu", parse_cpus)
    memory_limit = _quantity(limits, "memory", parse_bytes)
    # A limit without a request is the request as well.
    cpu = _quantity(requests, "cpu", parse_cpus)
    memory = _quantity(requests, "memory", parse_bytes)
    return Amounts(
        cpu=cpu_limit if cpu is None else cpu,
        cpu_limit=cpu_limit,
        memory=memory_limit if memory is None else memory,
        memory_limit=memory_limit,
        hugepages=_hugepages(limits),
    )


def _quantity(table: Table, key: str, parse: Callable[[str], _T]) -> _T | None:
    text = table.amount(key)
    try:
        return None if text is None else parse(text)
    except InputError as error:
        raise BadSetting(table.at(key), str(error)) from None


def _hugepages(limits: Table) -> tuple[HugePages, ...]:
    found = []
    for key in limits.rows:
        if key.startswith(_PAGES):
            try:
                size = parse_bytes(key.removeprefix(_PAGES))
            except InputError as error:
                raise BadSetting(limits.at(key), str(error)) from None
            if count := (_quantity(limits, key, parse_bytes) or 0) // max(size, 1):
                found.append(HugePages(size, count))
    return tuple(found)
