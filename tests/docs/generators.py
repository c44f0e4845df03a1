"""The generators by the names of the regions that they write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.docs.alerts import alerts
from tests.docs.annotations import annotation_keys, obeyed_keys
from tests.docs.chart import chart_values
from tests.docs.commands import command_line
from tests.docs.event_kinds import event_kinds
from tests.docs.kubectl import kubectl_plugin
from tests.docs.log_events import log_events
from tests.docs.metrics import agent_metrics, metrics, webhook_metrics
from tests.docs.options import options
from tests.docs.parts import parts
from tests.docs.public_names import public_names
from tests.docs.reasons import criteria, rules, types
from tests.docs.regions import Generator
from tests.docs.stub_fields import stub_fields

PAGES: Final = Path(__file__).parents[2] / "docs"
_CHART: Final = PAGES.parent / "deploy" / "helm" / "README.md"
FILES: Final = (*sorted(PAGES.glob("*.md")), _CHART)
"""All pages that have regions."""

# Read and checked without effect; a table written by hand lists them.
_NOT_IN_FORCE: Final = "dra"

GENERATORS: Final[Mapping[str, Generator]] = {
    "alerts": alerts,
    "annotations": annotation_keys,
    "annotations by policy": obeyed_keys,
    "chart values": chart_values,
    "command line": command_line,
    "criteria": criteria,
    "event kinds": event_kinds,
    "kubectl plugin": kubectl_plugin,
    "log events": log_events,
    "metrics": metrics,
    "metrics of the agent": agent_metrics,
    "options of agent": options("BalloonsPolicy", "agent"),
    "metrics of the webhook": webhook_metrics,
    "options of BalloonsPolicy": options(
        "BalloonsPolicy", but=(_NOT_IN_FORCE, "control.cpu")
    ),
    "options of NonePolicy": options("NonePolicy"),
    "options of DynamicPoolsPolicy": options("DynamicPoolsPolicy"),
    "options of dynamic pools": options("DynamicPoolsPolicy", "pools[]"),
    "options of PodpoolsPolicy": options("PodpoolsPolicy"),
    "options of pools": options("PodpoolsPolicy", "pools[]"),
    "options of StaticPoolsPolicy": options("StaticPoolsPolicy"),
    "options of static pools": options("StaticPoolsPolicy", "pools[]"),
    "options of cpuLists": options("StaticPoolsPolicy", "pools[].cpuLists[]"),
    "options of StaticPolicy": options("StaticPolicy"),
    "options of StaticPlusPolicy": options("StaticPlusPolicy"),
    "options of TopologyAwarePolicy": options(
        "TopologyAwarePolicy", but=(_NOT_IN_FORCE, "control.cpu")
    ),
    "options of balloonTypes": options("BalloonsPolicy", "balloonTypes[]"),
    "options of control.blockio": options("StaticPolicy", "control.blockio"),
    "options of control.rdt": options("StaticPolicy", "control.rdt"),
    "options of rebalance": options("TopologyAwarePolicy", "rebalance"),
    "options of schedulingClasses": options(
        "TopologyAwarePolicy", "schedulingClasses[]"
    ),
    "parts": parts,
    **public_names(),
    "rules": rules,
    "stub fields": stub_fields,
    "types": types,
}
"""By the name that a region has on its page."""
