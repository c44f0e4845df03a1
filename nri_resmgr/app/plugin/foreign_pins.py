"""Pins in requests of the kubelet, which shows that it has static managers."""

from __future__ import annotations

import asyncio
from typing import Final

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.stub.model import Container
from nri_resmgr.values import QosClass

_CPU: Final = "cpu"
_MEMORY: Final = "memory"


class ForeignPins:
    """Notes CPUs and memory nodes in requests for containers of the kubelet.

    A kubelet without static managers requests none. So they are found wherever this
    process runs; the kubelet's own files are not visible to a pod.

    Attributes:
        changed: Set when a manager is found, or is gone.

    Source:
        Kubernetes, pkg/kubelet/cm/internal_container_lifecycle_linux.go: a static CPU
        manager sets the CPUs of each new container, those that share CPUs included; a
        static Memory manager the nodes of Guaranteed ones.
    """

    def __init__(self) -> None:
        self._found: dict[str, KubeletManager] = {}
        self.changed = asyncio.Event()

    @property
    def managers(self) -> tuple[KubeletManager, ...]:
        """The managers that the requests show, each with the last such request."""
        return tuple(self._found.values())

    def note_new(self, container: Container, spec: ContainerSpec) -> None:
        """Note the request for a new container."""
        if KUBELET_NAME in container.labels:
            # For a Guaranteed one, both managers would have requested something.
            is_complete = spec.qos is QosClass.GUARANTEED
            self._note(spec, spec.present, is_complete=is_complete)

    def note_update(
        self, container: Container, spec: ContainerSpec, requested: Pin
    ) -> None:
        """Note the request to update a container, such as by a manager's own loop."""
        if KUBELET_NAME in container.labels:
            self._note(spec, requested, is_complete=False)

    def _note(self, spec: ContainerSpec, requested: Pin, *, is_complete: bool) -> None:
        before = self._found.keys() | ()
        sets = (_CPU, "CPUs", requested.cpus), (_MEMORY, "memory nodes", requested.mems)
        for kind, what, values in sets:
            if values:
                evidence = f"{what} {values} were requested for {spec.title}"
                self._found[kind] = KubeletManager(kind, "", evidence)
            elif is_complete:
                self._found.pop(kind, None)
        if self._found.keys() != before:
            self.changed.set()
