"""Cases of RDT: a document and a machine, and the schemata or the error they give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.classes.rdt.capabilities import (
    AMD_MAXIMUM,
    MBPS_MAXIMUM,
    PERCENT_MAXIMUM,
    Bandwidth,
    BandwidthMode,
    Capabilities,
    RdtCache,
)
from nri_resmgr.classes.rdt.checks import classes_of, group_of
from nri_resmgr.classes.rdt.plan import Plan, plan_of
from nri_resmgr.classes.rdt.settings import ROOT_CLASS, RdtConfig
from nri_resmgr.config.rdt import read_rdt_document
from nri_resmgr.values import CpuSet, ResmgrError
from tests.fast_yaml import read_yaml

CASES: Final = Path(__file__).parent.parent / "rdt_cases"

_MAXIMA: Final = {"percent": PERCENT_MAXIMUM, "MBps": MBPS_MAXIMUM, "amd": AMD_MAXIMUM}
# What a case says of itself; anything else is the document.
_ABOUT: Final = ("case", "machine", "classes", "root", "error", "ignored")
_FLAGS: Final = ("no-pod", "no-container")


@attrs.frozen
class Case:
    """One case of a file; its machine is that of the file unless it has its own."""

    name: str
    row: dict[str, Any]
    machine: dict[str, Any]

    def expected(self) -> dict[str, Any]:
        """Return what the case says must come of it."""
        wanted = (*_ABOUT[2:], *_FLAGS)
        return {key: self.row[key] for key in wanted if key in self.row}

    def outcome(self) -> dict[str, Any]:
        """Return what comes of it, in the same form."""
        about = (*_ABOUT, *_FLAGS)
        document = {key: row for key, row in self.row.items() if key not in about}
        # Some mistakes need a document that is no mapping.
        document = document.get("document", document)
        try:
            config = read_rdt_document(document)
            taken = {key: row for key, row in self.machine.items() if key == "taken"}
            plan = plan_of(config, machine_of(self.machine), **taken)
        except ResmgrError as error:
            return {"error": str(error)}
        return described(config, plan)


def described(config: RdtConfig, plan: Plan) -> dict[str, Any]:
    """Write a plan as cases do: lines apart by blanks, nothing that is empty."""
    classes = {group_of(one): one for _, one in classes_of(config)}
    rows = {
        "classes": {name: _lines(text) for name, text in plan.schemata.items()},
        "root": None if plan.root is None else _lines(plan.root),
        "no-pod": sorted(n for n, one in classes.items() if one.deny_pod_annotation),
        "no-container": sorted(
            n for n, one in classes.items() if one.deny_container_annotation
        ),
        "ignored": list(plan.ignored),
    }
    return {key: row for key, row in rows.items() if row not in ([], {}, None)}


def machine_of(row: dict[str, Any]) -> Capabilities:
    """Read a machine: its caches by name, ``MB``, and whether ``io_alloc`` is on."""
    caches = {name: _cache(row[name]) for name in row if name[0] == "L"}
    bandwidth = _bandwidth(row["MB"]) if "MB" in row else None
    switches = {key: row[key] for key in row if key == "io_alloc"}
    return Capabilities(caches, bandwidth, **switches)


def cases() -> Iterator[Case]:
    """Read all cases of all files."""
    for path in sorted(CASES.glob("*.yaml")):
        document = read_yaml(path)
        for row in document["cases"]:
            machine = row.get("machine", document["machine"])
            yield Case(f"{path.stem}: {row['case']}", row, machine)


def _cache(row: dict[str, Any]) -> RdtCache:
    return RdtCache(
        (1 << row["bits"]) - 1,
        row.get("min", 1),
        row.get("sparse", False),
        row.get("closids", 16),
        _ids(row),
    )


def _bandwidth(row: dict[str, Any]) -> Bandwidth:
    mode = row["mode"]
    maximum = row.get("maximum", _MAXIMA[mode])
    closids = row.get("closids", 16)
    return Bandwidth(
        BandwidthMode(mode),
        row["min"],
        row.get("gran", 10),
        maximum,
        closids,
        _ids(row),
    )


def _ids(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(CpuSet.parse(str(row["ids"])))


def _lines(text: str) -> str:
    assert not text or text.endswith("\n")
    assert ROOT_CLASS not in text
    return " ".join(text.splitlines())
