"""Reads scenarios from YAML; docs/scenarios.md describes the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import yaml

from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.config.policy_config import MOST_MOVED
from nri_resmgr.config.table import Table
from nri_resmgr.policies import find_kind
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.scenario.pods import read_run
from nri_resmgr.scenario.rows import ROW_KEYS, read_row
from nri_resmgr.scenario.steps import (
    AnnouncePod,
    Create,
    Delete,
    EndColdStart,
    Hotplug,
    Reconfigure,
    Remove,
    Restart,
    Rows,
    Scenario,
    StartContainer,
    Step,
    Stop,
    StopPod,
    Update,
    Wait,
)
from nri_resmgr.values import CpuSet, InputError

# Short names of the built-in kinds of documents, for steps that switch.
KINDS: Final = {
    "balloons": "BalloonsPolicy",
    "none": "NonePolicy",
    "static": "StaticPolicy",
    "static-plus": "StaticPlusPolicy",
    "static-pools": "StaticPoolsPolicy",
    "dynamic-pools": "DynamicPoolsPolicy",
    "podpools": "PodpoolsPolicy",
    "topology-aware": "TopologyAwarePolicy",
}

_TOP: Final = ("machine", "kind", "spec", "story")
_POD_ROW: Final = tuple(key for key in ROW_KEYS if key != "pod")
_RESTORES: Final = {"remembering": True, "forgetting": False}
_LONGEST: Final = 10**9  # seconds


def read_scenario(
    document: object, *also: str, kind: str = "TopologyAwarePolicy"
) -> Scenario:
    """Read a scenario.

    Args:
        document: The parsed YAML document.
        also: Additional keys of steps and of the scenario, for callers that read them.
        kind: Kind of the configuration if the scenario has none.

    Raises:
        BadSetting: The first mistake, with its path.
    """
    top = Table.read(document, *_TOP, *also)
    rows = top.rows.get("story")
    if not isinstance(rows, list):
        raise BadSetting(top.at("story"), "missing, expected a list of steps")
    kind = find_kind(top.text("kind", kind), top.at("kind")).name
    has_document = "kind" in top.rows or "spec" in top.rows
    reader = _Steps(kind, also)
    return Scenario(
        machine=top.text("machine", ""),
        document=document_of(kind, top.rows.get("spec")) if has_document else "",
        steps=tuple(
            reader.read(row, f"{top.at('story')}[{place}]")
            for place, row in enumerate(rows)
        ),
    )


def document_of(kind: str, spec: object = None) -> str:
    """Return a configuration document of *kind*."""
    document = {"apiVersion": API_VERSION, "kind": kind, "spec": spec}
    return yaml.safe_dump(document, sort_keys=False)


class _Steps:
    """Reads steps in order, and tracks the kind of the policy in force."""

    def __init__(self, kind: str, also: tuple[str, ...]) -> None:
        self._kind = kind
        self._also = also

    def read(self, row: object, path: str) -> Step:
        """Read a step by its verb."""
        found = row.keys() if isinstance(row, Mapping) else set()
        verbs = [verb for verb in _READERS if verb in found]
        if not verbs:
            # A mistake in the keys is reported first.
            Table.read(row, *_READERS, *ROW_KEYS, *self._also, path=path)
            raise BadSetting(path, f"no action, expected one of {', '.join(VERBS)}")
        keys, read = _READERS[verbs[0]]
        table = Table.read(row, verbs[0], *keys, *self._also, path=path)
        if verbs[0] not in table.rows and verbs[0] not in _MAY_BE_EMPTY:
            raise BadSetting(table.at(verbs[0]), "missing, expected a name")
        return read(self, table)

    def document(self, spec: object) -> str:
        return document_of(self._kind, spec)

    def hotplug(self, table: Table) -> Step:
        match table.rows["hotplug"]:
            case [str(machine), spec]:
                return Hotplug(machine, self.document(spec))
            case str(machine):
                return Hotplug(machine, "")
        raise BadSetting(
            table.at("hotplug"), "expected a machine, or a list of machine and spec"
        )

    def switch(self, table: Table) -> Step:
        match table.rows["switch"]:
            case [str(kind), spec]:
                kind = KINDS.get(kind, kind)
                self._kind = find_kind(kind, f"{table.at('switch')}[0]").name
                return Reconfigure(self.document(spec), switches=True)
        raise BadSetting(
            table.at("switch"), "expected a list of a kind of policy, and a spec"
        )

    def expects(self, table: Table) -> Step:
        rows = self._rows(table, "expects", _POD_ROW)
        overhead = None
        if "overhead" in table.rows:
            overhead = read_row(table.table("overhead", *_POD_ROW))
        return AnnouncePod(table.name("pod"), rows, overhead)

    def restart(self, table: Table) -> Step:
        match table.rows["restart"]:
            case str(how) if how in _RESTORES:
                return Restart(_RESTORES[how])
            case dict():
                return Restart(rows=self._rows(table, "restart", ROW_KEYS))
        words = " or ".join(_RESTORES)
        raise BadSetting(
            table.at("restart"), f"expected {words}, or containers by name"
        )

    @staticmethod
    def _rows(table: Table, key: str, keys: tuple[str, ...]) -> Rows:
        names = table.open_table(key)
        return {name: read_row(names.table(name, *keys)) for name in names.rows}


def _named(verb: str, make: Callable[[str], Step], _: _Steps, table: Table) -> Step:
    return make(table.name(verb))


def _create(_: _Steps, table: Table) -> Step:
    return Create(table.name("create"), read_row(table))


def _update(_: _Steps, table: Table) -> Step:
    return Update(table.name("update"), read_row(table, must_have_qos=False))


def _reconfigure(steps: _Steps, table: Table) -> Step:
    return Reconfigure(steps.document(table.rows.get("reconfigure")))


def _rebalance(table: Table) -> Step:
    limit = table.number("rebalance", 1, MOST_MOVED, 1)
    rows = table.open_table("busy")
    busy: dict[int, int] = {}
    for cpus in rows.rows:
        percent = rows.number(cpus, 0, 100, 0)
        try:
            busy |= dict.fromkeys(CpuSet.parse(cpus), percent * 10)
        except InputError as error:
            raise BadSetting(rows.at(cpus), str(error)) from None
    return Rebalance(limit, busy)


_RUN_KEYS: Final = (
    "replicas",
    "resources",
    "namespace",
    "labels",
    "annotations",
    "containers",
    "initContainers",
)
_Reader = Callable[[_Steps, Table], Step]
_READERS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "run": (_RUN_KEYS, lambda _, table: read_run(table)),
    "delete": ((), partial(_named, "delete", Delete)),
    "create": (ROW_KEYS, _create),
    "update": (ROW_KEYS, _update),
    "start": ((), partial(_named, "start", StartContainer)),
    "stop": ((), partial(_named, "stop", Stop)),
    "remove": ((), partial(_named, "remove", Remove)),
    "stop-pod": ((), partial(_named, "stop-pod", StopPod)),
    "expects": (("pod", "overhead"), _Steps.expects),
    "wait": ((), lambda _, table: Wait(table.number("wait", 0, _LONGEST, 0))),
    "cold-start-ends": ((), partial(_named, "cold-start-ends", EndColdStart)),
    "rebalance": (("busy",), lambda _, table: _rebalance(table)),
    "restart": ((), _Steps.restart),
    "reconfigure": ((), _reconfigure),
    "hotplug": ((), _Steps.hotplug),
    "switch": ((), _Steps.switch),
}
VERBS: Final = tuple(_READERS)
"""The verbs of steps."""

_MAY_BE_EMPTY: Final = ("expects", "reconfigure")
