"""Pods whose containers run in a virtual machine, recognized by runtime handler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

import msgspec

from nri_resmgr.stub.model import Pod

DEFAULT_VM_HANDLERS: Final = ("kata*",)
"""Patterns of the handlers that Kata Containers' own installers configure."""


class VmPod(msgspec.Struct, frozen=True):
    """A pod in a virtual machine.

    Attributes:
        handler: The runtime handler, as in its RuntimeClass.
        cgroup: The cgroup of its sandbox as in the OCI spec; empty if not reported.
    """

    id: str
    title: str
    handler: str
    cgroup: str


class VmPods:
    """The present pods in virtual machines.

    Args:
        handlers: Patterns of runtime handlers, as of a shell.
    """

    def __init__(self, handlers: Sequence[str] = DEFAULT_VM_HANDLERS) -> None:
        self._handlers = tuple(handlers)
        self._present: dict[str, VmPod] = {}

    @property
    def present(self) -> Mapping[str, VmPod]:
        """The pods by their ids."""
        return MappingProxyType(self._present)

    def is_vm(self, pod: Pod) -> bool:
        """Return whether a pod is in a virtual machine."""
        handler = pod.runtime_handler
        return any(fnmatchcase(handler, pattern) for pattern in self._handlers)

    def add(self, pod: Pod) -> None:
        """Add a pod, if it is in a virtual machine."""
        if self.is_vm(pod):
            title = f"{pod.namespace or '?'}/{pod.name or '?'}"
            path = pod.linux.cgroups_path if pod.linux else ""
            self._present[pod.id] = VmPod(pod.id, title, pod.runtime_handler, path)

    def begin_again(self, pods: Iterable[Pod]) -> None:
        """Replace all pods."""
        self._present.clear()
        for pod in pods:
            self.add(pod)

    def forget(self, pod: str) -> None:
        """Forget a pod that is gone."""
        self._present.pop(pod, None)
