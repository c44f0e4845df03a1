"""Setter of block I/O classes: by name, or as files of a container's cgroup."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
from nri_resmgr.app.classes.placed import blockio_choice
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.classes.unified import with_unified
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.classes.choice import UnknownClass
from nri_resmgr.config.blockio import BlockIoControl
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment

KIND: Final = "block I/O"


class BlockIoSetter(ClassSetter):
    """Adds a container's class to its adjustment.

    If the configuration has no classes, those of the runtime are used, by name.
    Otherwise the files are sent, and the runtime needs no configuration of its own.
    """

    def __init__(
        self,
        use: BlockIoControl,
        policy: ViewedPolicy[KnowsContainers],
        writer: BlockIoWriter,
    ) -> None:
        self._use = use
        self._policy = policy
        self._writer = writer
        self._host = writer.host
        if use.classes is not None:
            self._host.classes(use.classes)  # searches for devices, once

    def check(self, new: NewContainer) -> None:
        """Check the class that an annotation names; the runtime checks its own.

        Raises:
            UnknownClass: There is no such class.
        """
        request, classes = new.spec.own_preferences.blockio_class, self._use.classes
        if request is not None and classes is not None and request.name not in classes:
            title = new.spec.title
            raise UnknownClass(title, KIND, request.name, request.key, tuple(classes))

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerAdjustment:
        """Add the container's class, if it has one."""
        choice = blockio_choice(new.spec, self._use, self._policy, decision.state)
        if choice is None:
            return adjustment
        if self._use.classes is None:
            return adjustment.set_blockio_class(choice.name)
        found = self._host.current(self._use.classes, choice.name)
        if found is None:
            why = "there is no such class"
            self._host.problems.drop(choice, new.spec.title, why)
            return adjustment
        # Not line by line: runtimes do not show whether they write so.
        unified = found.unified(self._host.features)
        files = found.files(self._host.features)
        # Once the reply is out: to build one changes nothing.
        after_reply(self._host.note_new, new.spec.id, files, unified.rest)
        return with_unified(adjustment, unified.values)

    def start(
        self,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - does not depend on the place
    ) -> None:
        """Write the lines that the runtime cannot write, before the process runs."""
        spec = new.spec
        self._writer.write_rest(
            CgroupReference(spec.id, spec.cgroup, spec.pid), spec.title
        )
