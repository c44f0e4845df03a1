"""The state of the host's RDT groups: kept by the writer, read by setters."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.classes.rdt import ROOT_CLASS, Plan
from nri_resmgr.host.resctrl import RdtControl
from nri_resmgr.values import HostError

PENDING = "its groups are not made yet"


class Seen(msgspec.Struct, frozen=True):
    """A group as somebody saw it last.

    Attributes:
        schemata: In the form of a plan.
        threads: How many are in it.
    """

    schemata: str
    threads: int


class RdtHost:
    """What is known of the host's RDT classes.

    Attributes:
        control: The resctrl file system; None where there is none, or nobody looked.
        plan: What was made of the configuration; None where nothing was.
        seen: The groups that there are, by class; the root group's first.
        why: Why classes are not what the configuration says; empty where they are.
        is_settled: Whether somebody has tried to make the groups.
        problems: Those with these classes.
    """

    def __init__(self) -> None:
        self.control: RdtControl | None = None
        self.plan: Plan | None = None
        self.seen: Mapping[str, Seen] = {}
        self.why = PENDING
        self.is_settled = False
        self.problems = ClassProblems("rdt")

    def names(self) -> tuple[str, ...]:
        """Return the classes that the host has now; the root group's first."""
        if self.control is None:
            return ()
        try:
            return (ROOT_CLASS, *self.control.classes())
        except HostError:
            return ()

    def has(self, name: str) -> bool:
        """Tell whether a container can be given a class now."""
        try:
            return self.control is not None and self.control.has_class(name)
        except HostError:
            return False

    def unsettle(self) -> None:
        """Note that another configuration is in force, and nobody has acted yet."""
        self.is_settled, self.why = False, PENDING
        self.problems.forget()

    def look(self) -> None:
        """See which groups there are; reads some files for each.

        Raises:
            HostError: The kernel does not say.
        """
        found: dict[str, Seen] = {}
        if (control := self.control) is not None:
            for name in self.names():
                if (schemata := control.schemata_of(name)) is not None:
                    found[name] = Seen(schemata, len(control.tasks(name)))
        self.seen = found

    def settle(
        self, control: RdtControl | None, plan: Plan | None, why: str = ""
    ) -> None:
        """Note what was made of the groups."""
        self.control, self.plan, self.why = control, plan, why
        self.is_settled = True
