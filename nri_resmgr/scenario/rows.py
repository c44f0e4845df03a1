"""Reads a container of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.topology import HugePages
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import (
    Bytes,
    CpuSet,
    InputError,
    MilliCpus,
    NodeSet,
    QosClass,
    parse_bytes,
    parse_cpus,
)

_T = TypeVar("_T")
Texts = Mapping[str, str]

QOS: Final = {
    "guaranteed": QosClass.GUARANTEED,
    "burstable": QosClass.BURSTABLE,
    "best-effort": QosClass.BEST_EFFORT,
}

_LATEST: Final = (1 << 63) - 1
_MOST_PAGES: Final = 1 << 40


class ContainerRow(msgspec.Struct, frozen=True):
    """A container in a scenario; None for values that are not given.

    Attributes:
        qos: QoS class of its pod.
        request: CPU request.
        limit: CPU limit.
        memory: Memory request; of a Guaranteed container also the limit.
        memory_limit: Memory limit, if it differs.
        hugepages: Pages of each size.
        pod: Id and name of its pod; by default a pod for this container.
        name: Name in the pod; by default the name in the scenario.
        namespace: Namespace of the pod; by default ``default``.
        slot: The name by which it replaces another container of the pod.
        tags: Annotations of the container.
        pod_tags: Other annotations of the pod.
        annotations: Annotations of the pod that the plugin reads.
        env: Environment variables of the container.
        args: Its command line, as far as it is known: that of its image is not.
        created: UNIX nanoseconds.
        started: UNIX nanoseconds.
        present: The pinning in force, ``0-3 on 0 with 512``.
        of_pod: The amounts that its pod itself has (``spec.resources``).
        pod_memory: Its part of the pod's memory that no container requests, which
            counts in its OOM score.
    """

    qos: QosClass | None = None
    request: MilliCpus | None = None
    limit: MilliCpus | None = None
    memory: Bytes | None = None
    memory_limit: Bytes | None = None
    hugepages: tuple[HugePages, ...] | None = None
    pod: str | None = None
    name: str | None = None
    namespace: str | None = None
    slot: str | None = None
    labels: Texts | None = None
    tags: Texts | None = None
    pod_labels: Texts | None = None
    pod_tags: Texts | None = None
    annotations: Texts | None = None
    env: Texts | None = None
    args: tuple[str, ...] | None = None
    hints: tuple[Hint, ...] | None = None
    created: int | None = None
    started: int | None = None
    present: str | None = None
    of_pod: ContainerRow | None = None
    pod_memory: Bytes | None = None

    def over(self, known: ContainerRow) -> ContainerRow:
        """Return *known* with the given values of this row."""
        given = {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value is not None
        }
        return msgspec.structs.replace(known, **given)

    @property
    def effective_limit(self) -> MilliCpus | None:
        """The CPU limit; of a Guaranteed container by default the request."""
        if self.limit is None and self.qos is QosClass.GUARANTEED:
            return self.request
        return self.limit

    @property
    def effective_memory_limit(self) -> Bytes | None:
        """The memory limit; of a Guaranteed container by default the request."""
        if self.memory_limit is None and self.qos is QosClass.GUARANTEED:
            return self.memory
        return self.memory_limit

    @property
    def environment(self) -> tuple[str, ...]:
        """The environment variables as runtimes have them, ``NAME=value``."""
        return tuple(f"{name}={value}" for name, value in (self.env or {}).items())

    @property
    def pinned(self) -> Pin:
        """The pinning in force, by default with the kubelet's shares."""
        return NO_PIN if self.present is None else _pin(self.present, self.request)


# A QoS class has the request as its value.
ROW_KEYS: Final = (
    *QOS,
    *(
        name.replace("_", "-")
        for name in ContainerRow.__struct_fields__
        if name not in ("qos", "request", "of_pod", "pod_memory")
    ),
)


def read_row(table: Table, *, must_have_qos: bool = True) -> ContainerRow:
    """Read a container from a mapping with `ROW_KEYS`, and possibly others.

    A new container must have a QoS class.

    Raises:
        BadSetting: A value is invalid, or the QoS class is missing or given twice.
    """
    qos = _qos(table, must_have_qos=must_have_qos)
    request = None
    if qos is not None:
        # "best-effort:" without a value is valid as well.
        request = read_amount(table, qos, parse_cpus) or MilliCpus(0)
    present = table.text("present", "") or None
    if present is not None:
        read_value(table, "present", partial(_pin, present, request))
    return ContainerRow(
        qos=None if qos is None else QOS[qos],
        request=request,
        limit=read_amount(table, "limit", parse_cpus),
        memory=read_amount(table, "memory", parse_bytes),
        memory_limit=read_amount(table, "memory-limit", parse_bytes),
        hugepages=_hugepages(table),
        pod=table.text("pod", "") or None,
        name=table.text("name", "") or None,
        namespace=table.text("namespace", "") or None,
        slot=table.text("slot", "") or None,
        labels=read_texts(table, "labels"),
        tags=read_texts(table, "tags"),
        pod_labels=read_texts(table, "pod-labels"),
        pod_tags=read_texts(table, "pod-tags"),
        annotations=read_texts(table, "annotations"),
        env=read_texts(table, "env"),
        args=table.texts("args") if "args" in table.rows else None,
        hints=_hints(table),
        created=_time(table, "created"),
        started=_time(table, "started"),
        present=present,
    )


def read_texts(table: Table, key: str) -> Texts | None:
    """Read a mapping of text to text; None if it is missing."""
    if key not in table.rows:
        return None
    found = table.open_table(key)
    for name, value in found.rows.items():
        if not isinstance(value, str):
            raise BadSetting(found.at(name), f"expected text, not {value!r}: quote it")
    return {name: str(value) for name, value in found.rows.items()}


def _qos(table: Table, *, must_have_qos: bool) -> str | None:
    given = [word for word in QOS if word in table.rows]
    if len(given) > 1:
        raise BadSetting(table.at(given[1]), f"{given[0]} is given already")
    if not given and must_have_qos:
        raise BadSetting(table.path, f"expected one of {', '.join(QOS)}")
    return given[0] if given else None


def read_value(table: Table, key: str, parse: Callable[[], _T]) -> _T:
    """Read a value; a mistake that *parse* finds is reported with the key."""
    try:
        return parse()
    except (InputError, ValueError) as error:
        raise BadSetting(table.at(key), str(error)) from None


def read_amount(table: Table, key: str, parse: Callable[[str], _T]) -> _T | None:
    """Read text or a number by a parser of text; None if it is missing."""
    text = table.amount(key)
    return None if text is None else read_value(table, key, partial(parse, text))


def _time(table: Table, key: str) -> int | None:
    return table.number(key, 0, _LATEST, 0) if key in table.rows else None


def _hugepages(table: Table) -> tuple[HugePages, ...] | None:
    if "hugepages" not in table.rows:
        return None
    counts = table.open_table("hugepages")
    return tuple(
        HugePages(
            read_value(counts, size, partial(parse_bytes, size)),
            counts.number(size, 1, _MOST_PAGES, 0),
        )
        for size in counts.rows
    )


def _hints(table: Table) -> tuple[Hint, ...] | None:
    if "hints" not in table.rows:
        return None
    return tuple(
        read_value(table, f"hints[{place}]", partial(_hint, text))
        for place, text in enumerate(table.texts("hints", ()))
    )


def _hint(text: str) -> Hint:
    """Parse ``nic at cpus 0-3``, ``gpu at nodes 1``, ``podresapi:gpu at nodes 1``."""
    provider, at, place = text.partition(" at ")
    what, _, ids = place.partition(" ")
    if not at or what not in ("cpus", "nodes"):
        msg = "expected NAME at cpus LIST, or NAME at nodes LIST"
        raise ValueError(msg)
    if what == "nodes":
        return Hint(provider, nodes=NodeSet.parse(ids))
    return Hint(provider, cpus=CpuSet.parse(ids))


def _pin(text: str, request: MilliCpus | None) -> Pin:
    place, _, shares = text.partition(" with ")
    cpus, _, mems = place.partition(" on ")
    weight = int(shares or shares_of(request or MilliCpus(0)))
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems), weight)
