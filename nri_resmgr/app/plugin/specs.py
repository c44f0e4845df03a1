"""Containers as policies see them, put together from all who know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nri_resmgr.app.annotations import ProblemLog, Reading, read_preferences
from nri_resmgr.app.plugin.hints import ContainerHints
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, PluginOptions
from nri_resmgr.app.plugin.translate import (
    KUBELET_NAME,
    KnownContainer,
    expected_specs,
    living_specs,
    spec_of,
)
from nri_resmgr.app.requests import AnnotationSource, RequestSources
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hint_options import HintOptions
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import Bytes


class SpecReader:
    """Reads specs, and remembers what it needs for the next ones.

    Args:
        machine: The model of the host.
        known: Finds a container of an earlier event by its id.
        tree: The host; None where there is nothing to look up.
        conduct: Tells whether annotations may hand in topology hints, and who else
            knows of such.
    """

    def __init__(
        self,
        machine: Machine,
        known: Callable[[str], Entry | None],
        tree: Tree | None = None,
        plugin_options: PluginOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._source = AnnotationSource()
        self._problems = ProblemLog()
        self._known = known
        self._testing = plugin_options.testing
        self._tree = tree
        self._finder: Any = plugin_options.hints
        self._machine = machine
        self._requests = self._sources_for(machine)

    def change_machine(self, machine: Machine) -> None:
        """Go on with the CPUs and the memory that there are now."""
        if machine is not self._machine:
            self._machine = machine
            self._requests = self._sources_for(machine)

    def of_new(self, pod: Pod, container: Container) -> ContainerSpec:
        """Read a container that is being created.

        Raises:
            BadAnnotation: One that must not be misread means nothing.
            HostError: The place of a thing that it must be near to cannot be read.
        """
        background = self._read_background(pod, container, is_new=True)
        return spec_of(pod, container, requests=self._requests, background=background)

    def of_present(
        self, pod: Pod, container: Container, wanted: LinuxResources
    ) -> ContainerSpec:
        """Read a container as it would be with other resources."""
        background = self._background(pod, container)
        return spec_of(
            pod, container, wanted, requests=self._requests, background=background
        )

    def of_all(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> tuple[ContainerSpec, ...]:
        """Read all that lives, and forget what is gone."""
        self._requests.keep_only({pod.id for pod in pods})
        return living_specs(pods, containers, self._requests, self._background_now)

    def of_expected(self, pod: Pod) -> tuple[ContainerSpec, ...]:
        """Read the containers that a new pod will have, where that is known."""

        def preferences_of(name: str) -> Preferences:
            # Whatever is to be refused is refused at the container's own creation.
            return self._read(pod, name, refuse=False).preferences

        return expected_specs(pod, self._requests, preferences_of)

    def forget(self, pod: str) -> None:
        """Drop what is remembered of a pod that is gone."""
        self._requests.forget(pod)

    def _sources_for(self, machine: Machine) -> RequestSources:
        # The kubelet makes OOM scores for the memory of the node.
        capacity = Bytes(sum(node.memory for node in machine.nodes))
        return RequestSources((self._source,), capacity=capacity)

    def _background(self, pod: Pod, container: Container) -> KnownContainer:
        if entry := self._known(container.id):
            # Neither annotations nor devices change in a container's life.
            known = entry.spec
            return KnownContainer(known.preferences, known.hints, known)
        return self._read_background(pod, container, is_new=False)

    def _background_now(self, pod: Pod, container: Container) -> KnownContainer:
        """Look at one that may have been resized while nobody told us."""
        if entry := self._known(container.id):
            known = entry.spec
            return KnownContainer(
                known.preferences, known.hints, known, entry.last_sent
            )
        return self._read_background(pod, container, is_new=False)

    def _read_background(
        self, pod: Pod, container: Container, *, is_new: bool
    ) -> KnownContainer:
        name = container.name or container.labels.get(KUBELET_NAME, "")
        reading = self._read(pod, name, refuse=is_new)
        strict = is_new and reading.preferences.strict_hints
        hints = self._hints_of(container, reading.hints, strict=strict)
        return KnownContainer(reading.preferences, hints)

    def _hints_of(
        self, container: Container, options: HintOptions, *, strict: bool
    ) -> tuple[Hint, ...]:
        if self._finder is None:
            if self._tree is None:
                return ()
            self._finder = ContainerHints(self._tree)
        found: tuple[Hint, ...] = self._finder.of(
            container, self._machine, options, strict=strict
        )
        return found

    def _read(self, pod: Pod, name: str, *, refuse: bool) -> Reading:
        title = f"{pod.namespace}/{pod.name}"
        reading = read_preferences(
            pod.annotations, name, pod=title, testing=self._testing, refuse=refuse
        )
        if reading.problems:
            self._problems.report(title, name, reading.problems)
        return reading
