"""The generators by the names of the regions that they write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.docs.annotations import annotation_keys
from tests.docs.commands import command_line
from tests.docs.log_events import log_events
from tests.docs.metrics import metrics
from tests.docs.options import options
from tests.docs.reasons import criteria, rules, types
from tests.docs.regions import Generator
from tests.docs.stub_fields import stub_fields

PAGES: Final = Path(__file__).parents[2] / "docs"

# Read and checked without effect; a table written by hand lists them.
_SERVICES: Final = ("agent", "log", "instrumentation", "dra")
_NOT_SHOWN: Final = "showContainersInNrt"

GENERATORS: Final[Mapping[str, Generator]] = {
    "annotations": annotation_keys,
    "command line": command_line,
    "criteria": criteria,
    "log events": log_events,
    "metrics": metrics,
    "options of BalloonsPolicy": options(
        "BalloonsPolicy", "$.spec", but=(*_SERVICES, _NOT_SHOWN, "control.cpu")
    ),
    "options of StaticPolicy": options("StaticPolicy", "$.spec"),
    "options of TopologyAwarePolicy": options(
        "TopologyAwarePolicy", "$.spec", but=(*_SERVICES, "control.cpu")
    ),
    "options of balloonTypes": options(
        "BalloonsPolicy", "$.spec.balloonTypes[]", but=(_NOT_SHOWN,)
    ),
    "options of control.blockio": options("StaticPolicy", "$.spec.control.blockio"),
    "options of control.rdt": options("StaticPolicy", "$.spec.control.rdt"),
    "options of schedulingClasses": options(
        "TopologyAwarePolicy", "$.spec.schedulingClasses[]"
    ),
    "rules": rules,
    "stub fields": stub_fields,
    "types": types,
}
"""By the name that a region has on its page."""
