"""State of the host's RDT groups: updated by the writer, read by setters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.classes.rdt import ROOT_CLASS, Plan
from nri_resmgr.host.resctrl import RdtControl
from nri_resmgr.values import HostError

PENDING: Final = "its groups are not made yet"


class GroupState(msgspec.Struct, frozen=True):
    """A group as last read.

    Attributes:
        schemata: In the form of a plan.
    """

    schemata: str
    threads: int


class RdtHost:
    """State of the host's RDT classes.

    Attributes:
        control: The resctrl file system; None without one, or before the first step.
        plan: The groups made from the configuration; None for none.
        groups: The present groups by class, the root group first.
        why: Why classes are not as configured; empty where they are.
        is_settled: Whether the writer has tried to make the groups.
        before: Groups of adjusted containers before their adjustment, by id.
    """

    def __init__(self) -> None:
        self.control: RdtControl | None = None
        self.plan: Plan | None = None
        self.groups: Mapping[str, GroupState] = {}
        self.why = PENDING
        self.is_settled = False
        self.before: dict[str, str] = {}
        self.problems = ClassProblems("rdt")

    def names(self) -> tuple[str, ...]:
        """Return the classes that the host has now, the root group first."""
        if self.control is None:
            return ()
        try:
            return (ROOT_CLASS, *self.control.classes())
        except HostError:
            return ()

    def has(self, name: str) -> bool:
        """Return whether the host has a class now."""
        try:
            return self.control is not None and self.control.has_class(name)
        except HostError:
            return False

    def unsettle(self) -> None:
        """Note that another configuration is in force and not applied yet."""
        self.is_settled, self.why = False, PENDING
        self.problems.forget()

    def look(self) -> None:
        """Read the present groups; reads some files for each.

        Raises:
            HostError: They cannot be read.
        """
        found: dict[str, GroupState] = {}
        if (control := self.control) is not None:
            for name in self.names():
                if (schemata := control.schemata_of(name)) is not None:
                    found[name] = GroupState(schemata, len(control.tasks(name)))
        self.groups = found

    def settle(
        self, control: RdtControl | None, plan: Plan | None, why: str = ""
    ) -> None:
        """Store the outcome of making the groups."""
        self.control, self.plan, self.why = control, plan, why
        self.is_settled = True
