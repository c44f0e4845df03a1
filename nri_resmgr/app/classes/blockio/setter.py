"""Block I/O classes into adjustments: by name, or as files of a container's cgroup."""

from __future__ import annotations

from typing import Any, Final

from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.classes.unified import with_unified
from nri_resmgr.classes.choice import ClassChoice, UnknownClass, choose
from nri_resmgr.config.blockio import BlockIoControl
from nri_resmgr.host.container_cgroups import CgroupReference
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment

KIND: Final = "block I/O"


class BlockIoSetter(ClassSetter):
    """Gives a container its class at its creation.

    Where the document has no classes, the runtime has them, and is told a name.
    Otherwise it is told the files, and needs no configuration of its own.

    Args:
        use: What the configuration says.
        policy: Knows the classes of places.
        writer: Writes what the runtime cannot be told; its host knows the devices.
    """

    def __init__(
        self, use: BlockIoControl, policy: ViewedPolicy[Any], writer: BlockIoWriter
    ) -> None:
        self._use = use
        self._policy = policy
        self._writer = writer
        self._host = writer.host

    def check(self, new: NewContainer) -> None:
        """Judge an annotation; classes of the runtime are the runtime's to judge.

        Raises:
            UnknownClass: It names no class.
        """
        request, classes = new.spec.preferences.blockio_class, self._use.classes
        if request is not None and classes is not None and request.name not in classes:
            title = new.spec.title
            raise UnknownClass(title, KIND, request.name, request.key, tuple(classes))

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: Decision[Any],
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
        # Not by line: who writes so cannot be told from who does not.
        told = found.unified(self._host.features)
        self._host.give(new.spec.id, found.files(self._host.features))
        if told.rest:
            self._host.rest[new.spec.id] = told.rest
        return with_unified(adjustment, told.values)

    def start(
        self,
        begun: NewContainer,
        decision: Decision[Any],  # noqa: ARG002 - does not depend on the place
    ) -> None:
        """Write what the runtime could not be told, before the process runs."""
        spec = begun.spec
        self._writer.write_rest(
            CgroupReference(spec.id, spec.cgroup, spec.pid), spec.title
        )


def blockio_choice(
    spec: ContainerSpec, use: BlockIoControl, policy: ViewedPolicy[Any], state: Any
) -> ClassChoice | None:
    """Find the class of a container that the policy has placed."""
    given = policy.classes_of(state, spec.id).blockio
    qos = spec.qos if use.by_qos else None
    return choose(spec.preferences.blockio_class, given, qos)
