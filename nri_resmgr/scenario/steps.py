"""The steps of a scenario: what can happen on a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from nri_resmgr.scenario.rows import ContainerRow

Rows: TypeAlias = Mapping[str, ContainerRow]


class Create(msgspec.Struct, frozen=True):
    """A container is created, and its pod, if that is not there yet."""

    name: str
    row: ContainerRow


class Update(msgspec.Struct, frozen=True):
    """Somebody asks for other resources; what is not said is as before."""

    name: str
    row: ContainerRow


class Start(msgspec.Struct, frozen=True):
    """A container begins to run."""

    name: str


class Stop(msgspec.Struct, frozen=True):
    """A container has stopped."""

    name: str


class Remove(msgspec.Struct, frozen=True):
    """A container is gone."""

    name: str


class StopPod(msgspec.Struct, frozen=True):
    """A pod has stopped, and its containers with it."""

    pod: str


class AnnouncePod(msgspec.Struct, frozen=True):
    """A pod comes that says beforehand what its containers will ask for."""

    pod: str
    expects: Rows


class RunPods(msgspec.Struct, frozen=True):
    """Pods of one kind come, with all their containers.

    Attributes:
        name: Of the pod; with several replicas ``NAME-0`` and so on.
        containers: By name, in order; each says the namespace, labels and
            annotations of the pod.
        once: Names of those that end before the next one begins.
        replicas: How many pods.
    """

    name: str
    containers: Rows
    once: frozenset[str] = frozenset()
    replicas: int = 1


class Delete(msgspec.Struct, frozen=True):
    """All pods that one step ran go."""

    name: str


class Wait(msgspec.Struct, frozen=True):
    """Time passes."""

    seconds: int


class EndColdStart(msgspec.Struct, frozen=True):
    """The time without DRAM that a container asked for is over."""

    name: str


class Restart(msgspec.Struct, frozen=True):
    """The resource manager starts again, and the runtime tells what runs.

    Attributes:
        remembers: Whether it finds what it had written down of its state.
        rows: What the runtime tells; None for all that was there before.
    """

    remembers: bool = True
    rows: Rows | None = None


class Reconfigure(msgspec.Struct, frozen=True):
    """Another configuration comes into force.

    Attributes:
        document: The text of it, right or wrong.
        switches: Whether it may be of another kind than the one before.
    """

    document: str
    switches: bool = False


class Hotplug(msgspec.Struct, frozen=True):
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


class Scenario(msgspec.Struct, frozen=True):
    """A node, and what happens on it.

    Attributes:
        machine: The spec of a synthetic machine; empty where it is told elsewhere.
        document: The text of a configuration; empty where it is told elsewhere.
        steps: In order.
    """

    machine: str
    document: str
    steps: tuple[Step, ...]
