"""Reads `ContainerSpec`s from events, annotations, requests and hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nri_resmgr.app.annotations import ProblemLog, Reading, read_preferences
from nri_resmgr.app.plugin.hints import ContainerHints
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, HintFinder, PluginOptions
from nri_resmgr.app.plugin.translate import (
    KUBELET_NAME,
    KnownFacts,
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
    """Reads specs, and keeps the resource requests of pods for later events.

    Args:
        machine: The model of the host.
        known: Finds a container of an earlier event by its id.
        tree: The host; None for a simulated one.
        plugin_options: Whether annotations may pass hints, and the finder of hints.
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
        self._finder: HintFinder | None = plugin_options.hints
        self._machine = machine
        self._requests = self._sources_for(machine)

    def change_machine(self, machine: Machine) -> None:
        """Use another model of the host from now on."""
        if machine is not self._machine:
            self._machine = machine
            self._requests = self._sources_for(machine)

    def of_new(self, pod: Pod, container: Container) -> ContainerSpec:
        """Read a container that is being created.

        Raises:
            BadAnnotation: An annotation that must not be ignored is invalid.
            HostError: The place of a device is unreadable, and hints are strict.
        """
        known = self._read_known(pod, container, is_new=True)
        return spec_of(pod, container, requests=self._requests, facts=known)

    def of_present(
        self, pod: Pod, container: Container, wanted: LinuxResources
    ) -> ContainerSpec:
        """Read a container as it would be with other resources."""
        known = self._known_of(pod, container)
        return spec_of(pod, container, wanted, requests=self._requests, facts=known)

    def of_all(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> tuple[ContainerSpec, ...]:
        """Read all containers that have not stopped, and forget pods that are gone."""
        self._requests.keep_only({pod.id for pod in pods})
        return living_specs(pods, containers, self._requests, self._known_of_running)

    def of_expected(self, pod: Pod) -> tuple[ContainerSpec, ...]:
        """Read the containers that a new pod will have, where a source has them."""

        def preferences_of(name: str) -> Preferences:
            # Invalid annotations are refused when the container itself is created.
            return self._read(pod, name, refuse=False).preferences

        return expected_specs(pod, self._requests, preferences_of)

    def forget(self, pod: str) -> None:
        """Drop the requests of a pod that is gone."""
        self._requests.forget(pod)

    def _sources_for(self, machine: Machine) -> RequestSources:
        # The kubelet computes OOM scores, a source of requests, from the node's memory.
        capacity = Bytes(sum(node.memory for node in machine.nodes))
        return RequestSources((self._source,), capacity=capacity)

    def _known_of(self, pod: Pod, container: Container) -> KnownFacts:
        if entry := self._known(container.id):
            # Neither annotations nor devices change in a container's life.
            known = entry.spec
            return KnownFacts(known.preferences, known.hints, known)
        return self._read_known(pod, container, is_new=False)

    def _known_of_running(self, pod: Pod, container: Container) -> KnownFacts:
        """Include the last sent pins: a resize may have been missed."""
        if entry := self._known(container.id):
            known = entry.spec
            return KnownFacts(known.preferences, known.hints, known, entry.last_sent)
        return self._read_known(pod, container, is_new=False)

    def _read_known(
        self, pod: Pod, container: Container, *, is_new: bool
    ) -> KnownFacts:
        name = container.name or container.labels.get(KUBELET_NAME, "")
        reading = self._read(pod, name, refuse=is_new)
        strict = is_new and reading.preferences.strict_hints
        hints = self._hints_of(container, reading.hints, strict=strict)
        return KnownFacts(reading.preferences, hints)

    def _hints_of(
        self, container: Container, options: HintOptions, *, strict: bool
    ) -> tuple[Hint, ...]:
        if self._finder is None:
            if self._tree is None:
                return ()
            self._finder = ContainerHints(self._tree)
        return self._finder.of(container, self._machine, options, strict=strict)

    def _read(self, pod: Pod, name: str, *, refuse: bool) -> Reading:
        title = f"{pod.namespace}/{pod.name}"
        reading = read_preferences(
            pod.annotations, name, pod=title, testing=self._testing, refuse=refuse
        )
        if reading.problems:
            self._problems.report(title, name, reading.problems)
        return reading
