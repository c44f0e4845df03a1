"""Interface of the setters, each of which puts one kind of class into adjustments."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.host.cgroups.finder import CgroupFinder, CgroupFolders
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values import HostError


class NewContainer(msgspec.Struct, frozen=True):
    """A container that is created, started or resized: as NRI has it, and as read."""

    pod: Pod
    container: Container
    spec: ContainerSpec

    def cgroup(self, tree: Tree) -> CgroupFolders | None:
        """Find the cgroup that the runtime has made; None if there is none.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        spec = self.spec
        return CgroupFinder(tree).find(spec.id, spec.cgroup, self.container.pid)


class SetterOptions(msgspec.Struct, frozen=True):
    """Options of the command line that setters need.

    Attributes:
        mpolset: See `PluginOptions`.
        run_dir: The daemon's folder that has the same path for the runtime.
        dry_run: Whether nothing may be written.
    """

    mpolset: str | None = None
    run_dir: str = ""
    dry_run: bool = False


@dataclass(eq=False)
class NotSetOnHost(HostError):
    """This daemon cannot set a class of a container before it starts."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class ClassSetter:
    """Does nothing at each step; override the steps that your kind of class needs.

    Attributes:
        annotations: Parts of keys of annotations. No step is called for a pod without
            such a key, which most pods are. Empty if each container is to be looked at.
    """

    annotations = frozenset[str]()

    def check(self, new: NewContainer) -> None:
        """Check what a container asks for, before the policy decides.

        Raises:
            ResmgrError: The request cannot be met. The creation is refused, and
                nothing has changed.
        """

    def check_placement(self, new: NewContainer, decision: PolicyDecision) -> None:
        """Check what depends on the container's place, before the decision counts.

        Raises:
            ResmgrError: The request cannot be met there. The creation is refused, and
                nothing has changed.
        """

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,  # noqa: ARG002 - for overriding methods
        decision: PolicyDecision,  # noqa: ARG002 - for overriding methods
    ) -> ContainerAdjustment:
        """Add the container's class to the adjustment. Must not raise."""
        return adjustment

    def start(self, new: NewContainer, decision: PolicyDecision) -> None:
        """Write what needs the container's cgroup, before its process runs. Be quick.

        Raises:
            ResmgrError: It cannot be written; the container is not started.
        """

    def update(
        self,
        update: ContainerUpdate,
        new: NewContainer,  # noqa: ARG002 - for overriding methods
        decision: PolicyDecision,  # noqa: ARG002 - for overriding methods
    ) -> ContainerUpdate:
        """Add what follows from the new resources of a container. Must not raise."""
        return update
