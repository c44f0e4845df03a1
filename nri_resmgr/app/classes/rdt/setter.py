"""Setter of RDT classes: names those that have a group on the host."""

from __future__ import annotations

from typing import Final

from nri_proto import NriLevel
from nri_resmgr.app.classes.placed import rdt_choice
from nri_resmgr.app.classes.rdt.host import RdtHost
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.classes.choice import (
    ClassDenied,
    ClassMissing,
    Origin,
    UnknownClass,
)
from nri_resmgr.classes.rdt import ROOT_CLASS
from nri_resmgr.classes.rdt.checks import classes_of, group_of
from nri_resmgr.config.rdt import RdtUse
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.runtime_info import RuntimeInfo

KIND: Final = "RDT"

# First NRI release with the group's own name. `rdt_class` is a class of the runtime,
# to which CRI-O adds a prefix.
CLOS_LEVEL: Final = NriLevel(0, 11)


class RdtSetter(ClassSetter):
    """Names a container's class, which runtimes accept at its creation only.

    A container whose class has no group yet is moved into it later, by
    `nri_resmgr.app.classes.rdt.writer`.
    """

    def __init__(
        self,
        use: RdtUse,
        runtime: RuntimeInfo,
        policy: ViewedPolicy[KnowsContainers],
        host: RdtHost,
    ) -> None:
        self._use = use
        self._runtime = runtime
        self._policy = policy
        self._host = host
        rows = classes_of(use.config) if use.config else ()
        self._classes = {group_of(one): one for _, one in rows}

    def check(self, new: NewContainer) -> None:
        """Check the class that an annotation names.

        Raises:
            UnknownClass: There is no such class.
            ClassDenied: The annotation may not name it.
            ClassMissing: The class is configured and has no group here.
        """
        request = new.spec.own_preferences.rdt_class
        if request is None:
            return
        about = (new.spec.title, KIND, request.name, request.key)
        # Before the groups are made none is missing: the container is moved later.
        is_missing = self._host.is_settled and not self._host.has(request.name)
        if self._use.config is None:
            if is_missing and self._host.control is not None:
                raise UnknownClass(*about, self._host.names())
        elif request.name not in {ROOT_CLASS, *self._classes}:
            raise UnknownClass(*about, tuple(self._classes))
        found = self._classes.get(request.name)
        if found and found.deny_container_annotation and request.of_container:
            raise ClassDenied(*about, "kubernetes.denyContainerAnnotation")
        if found and found.deny_pod_annotation and not request.of_container:
            raise ClassDenied(*about, "kubernetes.denyPodAnnotation")
        if is_missing:
            raise ClassMissing(*about, self._host.why or "its group is gone")

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerAdjustment:
        """Name the container's class, if the host has a group for it."""
        choice = rdt_choice(new.spec, self._use, self._policy, decision.state)
        # A container without a class starts in the root group.
        if choice is None or choice.name == ROOT_CLASS:
            return adjustment
        if self._host.has(choice.name):
            return self._named(adjustment, choice.name)
        if self._host.is_settled and choice.origin is not Origin.ANNOTATION:
            why = self._host.why or "there is no such class"
            self._host.problems.drop(choice, new.spec.title, why)
        return adjustment

    def _named(self, adjustment: ContainerAdjustment, name: str) -> ContainerAdjustment:
        level = self._runtime.level
        if level is not None and level >= CLOS_LEVEL:
            return adjustment.set_rdt_clos_id(name)
        return adjustment.set_rdt_class(name)
