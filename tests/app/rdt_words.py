"""Documents and annotations of RDT classes, and what is sent to the runtime of them."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.stub.model import Rdt
from nri_resmgr.testing import CreateResult

KEY = "rdtclass.resource-policy.nri.io"
GOLD: Mapping[str, str] = {KEY: "gold"}


def document(classes: str = "gold: {}, silver: {l3Allocation: 50%}", *more: str) -> str:
    partitions = f"partitions: {{p: {{l3Allocation: 100%, classes: {{{classes}}}}}}}"
    said = ", ".join(("enable: true", partitions, *more))
    return f"{{control: {{rdt: {{{said}}}}}}}"


def sent(created: CreateResult) -> tuple[str | None, str | None]:
    """Return what was sent to the runtime: names of the group and of the class."""
    adjustment = created.adjustment
    rdt = (adjustment.linux and adjustment.linux.rdt) or Rdt()
    return rdt.clos_id, adjustment.resources.rdt_class
