"""The pictures of the pages, drawn of what the pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.scenario.picture import picture_of
from tests.docs.generators import PAGES
from tests.scenario.test_docs import SIMULATE, blocks, simulated

_MACHINE: Final = "2s2n2c2t"


def _simulate() -> str:
    workload, _ = blocks(SIMULATE, "yaml")
    return picture_svg(picture_of(simulated(workload, _MACHINE)))


def _against() -> str:
    workload, document = blocks(SIMULATE, "yaml")
    before = simulated(workload, _MACHINE)
    return picture_svg(picture_of(before, simulated(workload, _MACHINE, document)))


PICTURES: Final[Mapping[Path, Callable[[], str]]] = {
    PAGES / "pictures" / "simulate.svg": _simulate,
    PAGES / "pictures" / "against.svg": _against,
}
"""How each picture is drawn."""
