"""A policy that decides about containers, one after the other."""

from __future__ import annotations

from typing import Any

import yaml

from nri_resmgr.config.table import Table
from nri_resmgr.policy.events import Created
from nri_resmgr.scenario.rows import ROW_KEYS, read_row
from nri_resmgr.topology.synthetic import parse_spec
from tests.policy.direct import spec_of_row
from tests.policy.stories import policy_of


class PolicyNode:
    """A node with a policy of a kind, and what becomes of it.

    Args:
        machine: The spec of a synthetic machine.
        kind: Of the policy.
        spec: Of its document.
    """

    def __init__(self, machine: str, kind: str, spec: str) -> None:
        self.machine = parse_spec(machine)
        self.policy = policy_of(kind, yaml.safe_load(spec), self.machine)
        self.state = self.policy.start()

    def create(self, name: str, **row: Any) -> None:
        """Create a container; a refusal is raised."""
        read = read_row(Table.read(row, *ROW_KEYS))
        spec = spec_of_row(name, read, self.machine, [])
        self.state = self.policy.decide(self.state, Created(spec)).state
