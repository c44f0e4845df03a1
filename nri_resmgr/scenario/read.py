"""Scenarios out of their YAML text; docs/scenarios.md describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from nri_resmgr.config import API_VERSION, BadSetting
from nri_resmgr.config.kinds import find_kind
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
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
    Start,
    Step,
    Stop,
    StopPod,
    Update,
    Wait,
)

# Short names of the built-in kinds of documents, for steps that switch.
KINDS: Final = {
    "balloons": "BalloonsPolicy",
    "static": "StaticPolicy",
    "topology-aware": "TopologyAwarePolicy",
}

_TOP: Final = ("machine", "kind", "spec", "story")
_POD_ROW: Final = tuple(key for key in ROW_KEYS if key != "pod")
_REMEMBERING: Final = {"remembering": True, "forgetting": False}
_LONGEST: Final = 10**9  # seconds


def read_scenario(text: str, *also: str, kind: str = "TopologyAwarePolicy") -> Scenario:
    """Read a scenario.

    Args:
        text: One YAML document.
        also: Keys that steps and the whole may have besides, for who reads more.
        kind: Of the configuration, where the scenario does not say.

    Raises:
        BadSyntax: The text is not one YAML document.
        BadSetting: The first problem met in it; its path says where.
    """
    return read_document(parse_yaml(text), *also, kind=kind)


def read_document(document: object, *also: str, kind: str) -> Scenario:
    """Read a scenario that is parsed already; see `read_scenario`."""
    top = Table.read(document, *_TOP, *also)
    rows = top.rows.get("story")
    if not isinstance(rows, list):
        raise BadSetting(top.at("story"), "missing, expected a list of steps")
    kind = find_kind(top.text("kind", kind), top.at("kind")).name
    told = "kind" in top.rows or "spec" in top.rows
    reader = _Steps(kind, also)
    return Scenario(
        machine=top.text("machine", ""),
        document=_document(kind, top.rows.get("spec")) if told else "",
        steps=tuple(
            reader.read(row, f"{top.at('story')}[{place}]")
            for place, row in enumerate(rows)
        ),
    )


def document_of(kind: str, spec: object = None) -> str:
    """Write a configuration document of *kind*."""
    return _document(kind, spec)


class _Steps:
    """Reads one step after the other, and knows what kind of policy is in force."""

    def __init__(self, kind: str, also: tuple[str, ...]) -> None:
        self._kind = kind
        self._also = also

    def read(self, row: object, path: str) -> Step:
        """Find out what a step is, and read it."""
        found = row.keys() if isinstance(row, Mapping) else set()
        verbs = [verb for verb in _READERS if verb in found]
        if not verbs:
            # Says what is wrong with it, if anything else is.
            Table.read(row, *_READERS, *ROW_KEYS, *self._also, path=path)
            raise BadSetting(
                path, f"nothing happens: one of {', '.join(VERBS)} is needed"
            )
        keys, read = _READERS[verbs[0]]
        table = Table.read(row, verbs[0], *keys, *self._also, path=path)
        if verbs[0] not in table.rows and verbs[0] not in _MAY_BE_EMPTY:
            raise BadSetting(table.at(verbs[0]), "missing, expected a name")
        return read(self, table)

    def document(self, spec: object) -> str:
        return _document(self._kind, spec)

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
        return AnnouncePod(table.name("pod"), rows)

    def restart(self, table: Table) -> Step:
        match table.rows["restart"]:
            case str(how) if how in _REMEMBERING:
                return Restart(_REMEMBERING[how])
            case dict():
                return Restart(rows=self._rows(table, "restart", ROW_KEYS))
        words = " or ".join(_REMEMBERING)
        raise BadSetting(
            table.at("restart"), f"expected {words}, or containers by name"
        )

    @staticmethod
    def _rows(table: Table, key: str, keys: tuple[str, ...]) -> Rows:
        names = table.open_table(key)
        return {name: read_row(names.table(name, *keys)) for name in names.rows}


def _document(kind: str, spec: object) -> str:
    import yaml

    document = {"apiVersion": API_VERSION, "kind": kind, "spec": spec}
    return yaml.safe_dump(document, sort_keys=False)


def _named(verb: str, make: Callable[[str], Step], _: _Steps, table: Table) -> Step:
    return make(table.name(verb))


def _create(_: _Steps, table: Table) -> Step:
    return Create(table.name("create"), read_row(table))


def _update(_: _Steps, table: Table) -> Step:
    return Update(table.name("update"), read_row(table, must_have_qos=False))


def _reconfigure(steps: _Steps, table: Table) -> Step:
    return Reconfigure(steps.document(table.rows.get("reconfigure")))


def _wait(_: _Steps, table: Table) -> Step:
    return Wait(table.number("wait", 0, _LONGEST, 0))


def _run(_: _Steps, table: Table) -> Step:
    return read_run(table)


_RUN_KEYS: Final = (
    "replicas",
    "namespace",
    "labels",
    "annotations",
    "containers",
    "initContainers",
)
_Reader = Callable[[_Steps, Table], Step]
_READERS: Final[Mapping[str, tuple[tuple[str, ...], _Reader]]] = {
    "run": (_RUN_KEYS, _run),
    "delete": ((), partial(_named, "delete", Delete)),
    "create": (ROW_KEYS, _create),
    "update": (ROW_KEYS, _update),
    "start": ((), partial(_named, "start", Start)),
    "stop": ((), partial(_named, "stop", Stop)),
    "remove": ((), partial(_named, "remove", Remove)),
    "stop-pod": ((), partial(_named, "stop-pod", StopPod)),
    "expects": (("pod",), _Steps.expects),
    "wait": ((), _wait),
    "cold-start-ends": ((), partial(_named, "cold-start-ends", EndColdStart)),
    "restart": ((), _Steps.restart),
    "reconfigure": ((), _reconfigure),
    "hotplug": ((), _Steps.hotplug),
    "switch": ((), _Steps.switch),
}
VERBS: Final = tuple(_READERS)
"""What a step can begin with."""

_MAY_BE_EMPTY: Final[Any] = ("expects", "reconfigure")
