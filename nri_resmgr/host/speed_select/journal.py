"""Keeps the original settings of Speed Select for the next process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.trust import UntrustedState
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.values import CpuSet, InputError, KiloHertz

NAME: Final = "speed-select-changes"
"""File in the state directory; it exists while anything is changed."""

FORMAT: Final = 1

_encode: Final = json.JSONEncoder(indent=0).encode


class SstJournal:
    """Original settings of punits, in a file that outlives the process.

    Those of another boot are discarded: the firmware has reset Speed Select.

    Args:
        state: The state directory, locked by this process.
        boot: Id of this boot of the kernel.

    Attributes:
        set_aside: New path of an invalid journal; empty without one.
    """

    def __init__(self, state: StateDir, boot: str) -> None:
        self._state = state
        self._boot = boot
        self.set_aside = ""

    def read(self) -> tuple[Punit, ...]:
        """Return the original settings of all changed punits.

        Raises:
            StateUnusable: The journal cannot be read or renamed.
        """
        try:
            text = self._state.read(NAME)
            return () if text is None else _punits(text, self._boot)
        except (UntrustedState, InputError, ValueError, KeyError, TypeError):
            self.set_aside = self._state.set_aside(NAME)
            return ()

    def write(self, punits: Sequence[Punit]) -> None:
        """Replace the journal atomically.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        if not punits:
            self._state.remove(NAME)
            return
        document = {
            "journal": "nri-resmgr Speed Select changes",
            "format": FORMAT,
            "boot": self._boot,
            "punits": [_row(punit) for punit in punits],
        }
        self._state.write(NAME, f"{_encode(document)}\n")


def _row(punit: Punit) -> Mapping[str, object]:
    return {
        "package": punit.package,
        "id": punit.id,
        "cpus": str(punit.cpus),
        "turbo": punit.turbo,
        "power": punit.power,
        "order": punit.order,
        "clos": [
            [clos.weight, clos.min, clos.max, str(clos.cpus)] for clos in punit.clos
        ],
    }


def _punits(text: str, boot: str) -> tuple[Punit, ...]:
    document = json.loads(text)
    if document["format"] != FORMAT:
        raise ValueError(document["format"])
    found = tuple(_punit(row) for row in document["punits"])
    return found if document["boot"] == boot else ()


def _punit(row: Any) -> Punit:
    return Punit(
        package=_number(row["package"]),
        id=_number(row["id"]),
        cpus=CpuSet.parse(row["cpus"]),
        turbo=Feature(row["turbo"]),
        power=Feature(row["power"]),
        order=ClosOrder(row["order"]),
        clos=tuple(_clos(*clos) for clos in row["clos"]),
    )


def _clos(weight: object, low: object, high: object, cpus: str) -> Clos:
    return Clos(
        _number(weight),
        None if low is None else KiloHertz(_number(low)),
        None if high is None else KiloHertz(_number(high)),
        CpuSet.parse(cpus),
    )


def _number(found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ValueError(found)
    return found
