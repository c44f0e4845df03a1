"""The steps of a scenario: what can happen on a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

Rows: TypeAlias = Mapping[str, ContainerRow]


@frozen
class Create(ByContent):
    """A container is created, and its pod, if that is not there yet."""

    name: str
    row: ContainerRow


@frozen
class Update(ByContent):
    """Somebody asks for other resources; what is not said is as before."""

    name: str
    row: ContainerRow


@frozen
class Start(ByContent):
    """A container begins to run."""

    name: str


@frozen
class Stop(ByContent):
    """A container has stopped."""

    name: str


@frozen
class Remove(ByContent):
    """A container is gone."""

    name: str


@frozen
class StopPod(ByContent):
    """A pod has stopped, and its containers with it."""

    pod: str


@frozen
class AnnouncePod(ByContent):
    """A pod comes that says beforehand what its containers will ask for."""

    pod: str
    expects: Rows = attrs.field(hash=False)


@frozen
class RunPods(ByContent):
    """Pods of one kind come, with all their containers.

    Attributes:
        name: Of the pod; with several replicas ``NAME-0`` and so on.
        containers: By name, in order; each says the namespace, labels and
            annotations of the pod.
        once: Names of those that end before the next one begins.
        replicas: How many pods.
    """

    name: str
    containers: Rows = attrs.field(hash=False)
    once: frozenset[str] = frozenset()
    replicas: int = 1


@frozen
class Delete(ByContent):
    """All pods that one step ran go."""

    name: str


@frozen
class Wait(ByContent):
    """Time passes."""

    seconds: int


@frozen
class EndColdStart(ByContent):
    """The time without DRAM that a container asked for is over."""

    name: str


@frozen
class Restart(ByContent):
    """The resource manager starts again, and the runtime tells what runs.

    Attributes:
        remembers: Whether it finds what it had written down of its state.
        rows: What the runtime tells; None for all that was there before.
    """

    remembers: bool = True
    rows: Rows | None = attrs.field(default=None, hash=False)


@frozen
class Reconfigure(ByContent):
    """Another configuration comes into force.

    Attributes:
        document: The text of it, right or wrong.
        switches: Whether it may be of another kind than the one before.
    """

    document: str
    switches: bool = False


@frozen
class Hotplug(ByContent):
    """CPUs or memory come and go, with a configuration that goes with it."""

    machine: str
    document: str


Step: TypeAlias = (
    Create
    | Update
    | Start
    | Stop
    | Remove
    | StopPod
    | AnnouncePod
    | RunPods
    | Delete
    | Wait
    | EndColdStart
    | Restart
    | Reconfigure
    | Hotplug
)


@frozen
class Scenario(ByContent):
    """A node, and what happens on it.

    Attributes:
        machine: The spec of a synthetic machine; empty where it is told elsewhere.
        document: The text of a configuration; empty where it is told elsewhere.
        steps: In order.
    """

    machine: str
    document: str
    steps: tuple[Step, ...]
