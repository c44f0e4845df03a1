"""The alerts of ``deploy/monitoring``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.fast_yaml import read_yaml

MONITORING: Final = Path(__file__).parents[2] / "deploy" / "monitoring"
_RULE: Final = MONITORING / "alerts" / "prometheus-rule.yaml"


def specification() -> dict[str, Any]:
    """Return what a Prometheus without the operator reads as a file of rules."""
    spec: dict[str, Any] = read_yaml(_RULE)["spec"]
    return spec


def alerts() -> Iterator[Mapping[str, Any]]:
    """Yield all rules, each of which is an alert."""
    for group in specification()["groups"]:
        yield from group["rules"]


ALERTS: Final[Mapping[str, Mapping[str, Any]]] = {one["alert"]: one for one in alerts()}
"""By name, in the order of the file."""
