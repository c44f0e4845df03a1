"""The steps of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.events import Rebalance
from nri_resmgr.scenario.rows import ContainerRow

Rows: TypeAlias = Mapping[str, ContainerRow]


class Create(msgspec.Struct, frozen=True):
    """Create a container, and its pod if it does not exist yet."""

    name: str
    row: ContainerRow


class Update(msgspec.Struct, frozen=True):
    """Update the resources of a container; values that are not given stay."""

    name: str
    row: ContainerRow


class StartContainer(msgspec.Struct, frozen=True):
    """Start a container."""

    name: str


class Stop(msgspec.Struct, frozen=True):
    """Stop a container."""

    name: str


class Remove(msgspec.Struct, frozen=True):
    """Remove a container."""

    name: str


class StopPod(msgspec.Struct, frozen=True):
    """Stop a pod and its containers."""

    pod: str


class AnnouncePod(msgspec.Struct, frozen=True):
    """Run a pod that announces the requests of its containers.

    Attributes:
        overhead: What the pod itself needs beside them; None for nothing.
    """

    pod: str
    expects: Rows
    overhead: ContainerRow | None = None


class RunPods(msgspec.Struct, frozen=True):
    """Run pods with all their containers.

    Attributes:
        name: Name of the pod; with several replicas ``NAME-0`` and so on.
        containers: By name, in order; each has the namespace, labels and
            annotations of the pod.
        once: Names of containers that end before the next one starts.
    """

    name: str
    containers: Rows
    once: frozenset[str] = frozenset()
    replicas: int = 1

    @property
    def pod_names(self) -> tuple[str, ...]:
        """The names of the pods."""
        if self.replicas == 1:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(self.replicas))

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        first = next(iter(self.containers.values()))
        return first.namespace or "default"


class Delete(msgspec.Struct, frozen=True):
    """Delete all pods that the steps of a name ran, in all namespaces."""

    name: str


class Wait(msgspec.Struct, frozen=True):
    """Wait."""

    seconds: int


class EndColdStart(msgspec.Struct, frozen=True):
    """End the cold start of a container."""

    name: str


class Restart(msgspec.Struct, frozen=True):
    """Restart the resource manager and synchronize it.

    Attributes:
        restores: Whether it restores its checkpoint.
        rows: The containers that the runtime lists; None for all present ones.
    """

    restores: bool = True
    rows: Rows | None = None


class Reconfigure(msgspec.Struct, frozen=True):
    """Apply another configuration.

    Attributes:
        document: Its text, which may be invalid.
        switches: Whether its kind may differ.
    """

    document: str
    switches: bool = False


class Hotplug(msgspec.Struct, frozen=True):
    """Change the machine, and apply a configuration that fits it."""

    machine: str
    document: str


Step: TypeAlias = (
    Create
    | Update
    | StartContainer
    | Stop
    | Remove
    | StopPod
    | AnnouncePod
    | RunPods
    | Delete
    | Wait
    | EndColdStart
    | Rebalance
    | Restart
    | Reconfigure
    | Hotplug
)


class LeftOut(msgspec.Struct, frozen=True):
    """A Kubernetes object that was not read, although it may make pods; or a file.

    Attributes:
        api: Its ``apiVersion``.
        title: Its name, with the namespace if it has one; empty without a name.
        why: The reason, as a sentence about the object.
        file: The file that has it, where several were read.
        is_file: Whether it is the whole file.
    """

    api: str
    kind: str
    title: str
    why: str
    file: str = ""
    is_file: bool = False

    def __str__(self) -> str:
        if self.is_file:
            return f"file {self.file}"
        name = f"{self.kind or 'object'} {self.title or 'without a name'}"
        api = f" ({self.api})" if self.api else ""
        return f"{name}{api}" + (f" in {self.file}" if self.file else "")


class Skipped(msgspec.Struct, frozen=True):
    """Kubernetes objects of a kind of which no pods come.

    Attributes:
        number: How many there are.
        why: The reason, as a sentence about them.
    """

    kind: str
    number: int
    why: str


class ByShape(msgspec.Struct, frozen=True):
    """A Kubernetes object whose pod templates were found by their shape.

    Attributes:
        api: Its ``apiVersion``.
        title: Its name, with the namespace if it has one.
        pods: The number of pods of each of its parts, by a word for the part; the word
            is empty for an object with one template.
    """

    api: str
    kind: str
    title: str
    pods: Mapping[str, int]


class Scenario(msgspec.Struct, frozen=True):
    """A node and the steps on it.

    Attributes:
        machine: The spec of a synthetic machine; empty if given elsewhere.
        document: The text of a configuration; empty if given elsewhere.
        left_out: The objects of manifests, and the files, that were not read.
        skipped: The objects of manifests of which no pods come.
        by_shape: The objects of manifests whose kinds are not known.
    """

    machine: str
    document: str
    steps: tuple[Step, ...]
    left_out: tuple[LeftOut, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    by_shape: tuple[ByShape, ...] = ()

    @property
    def pods(self) -> int:
        """The number of pods that its steps run."""
        runs = (step for step in self.steps if isinstance(step, RunPods))
        return sum(step.replicas for step in runs)
