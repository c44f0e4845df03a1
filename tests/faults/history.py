"""The steps of a history on a node; a step survives the daemon's death."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

import attrs

from nri_resmgr.scenario.kubelet import container_of, pod_of, resources_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.values import Bytes, MilliCpus, QosClass
from tests.faults.daemons import PATIENCE, Place

Act: TypeAlias = Callable[[Place], Awaitable[None]]

_GIB: Final = Bytes(1 << 30)
_CAPACITY: Final = Bytes(64 << 30)


@attrs.frozen
class Step:
    """One step of a history.

    Attributes:
        title: What happens.
        act: Makes it happen.
        counts: Whether the daemon may die in it without effect on the outcome. A
            refused request does not count: without a daemon it succeeds.
    """

    title: str
    act: Act
    counts: bool = True


def guaranteed(milli: int, namespace: str = "default") -> ContainerRow:
    return _asking(QosClass.GUARANTEED, milli, namespace)


def burstable(milli: int, namespace: str = "default") -> ContainerRow:
    return _asking(QosClass.BURSTABLE, milli, namespace)


def best_effort() -> ContainerRow:
    return ContainerRow(qos=QosClass.BEST_EFFORT)


def _asking(qos: QosClass, milli: int, namespace: str) -> ContainerRow:
    request = MilliCpus(milli)
    return ContainerRow(qos=qos, request=request, memory=_GIB, namespace=namespace)


def run(name: str, row: ContainerRow, pod: str = "") -> Step:
    """Run a container, in a pod that may be there."""
    return Step(f"run {name}", lambda place: place_container(place, name, row, pod))


async def place_container(
    place: Place, name: str, row: ContainerRow, pod: str = ""
) -> None:
    """Do as a kubelet that starts a container, in a pod of its own by default."""
    runtime, pod = place.runtime, pod or f"pod-{name}"
    if pod not in runtime.world.pods:
        await runtime.run_pod(pod_of(pod, row))
    await runtime.create_container(pod, container_of(name, row, _CAPACITY))
    await runtime.start_container(name)


def refused(name: str, row: ContainerRow) -> Step:
    """Request more CPUs than the node has."""

    async def act(place: Place) -> None:
        with suppress(RuntimeRefusal):
            await place_container(place, name, row)
        assert name not in place.runtime.world.containers
        await place.runtime.stop_pod(f"pod-{name}")
        await place.runtime.remove_pod(f"pod-{name}")

    return Step(f"refuse {name}", act, counts=False)


def resize(name: str, row: ContainerRow) -> Step:
    return Step(
        f"resize {name}",
        lambda place: _drop(place.runtime.update_container(name, resources_of(row))),
    )


def stop(name: str) -> Step:
    return Step(f"stop {name}", lambda place: _drop(place.runtime.stop_container(name)))


def remove(name: str) -> Step:
    return Step(
        f"remove {name}", lambda place: _drop(place.runtime.remove_container(name))
    )


def end_pod(pod: str) -> Step:
    """Stop a pod and remove it."""

    async def act(place: Place) -> None:
        await place.runtime.stop_pod(pod)
        await place.runtime.remove_pod(pod)

    return Step(f"end {pod}", act)


def restart_runtime() -> Step:
    """Restart the connection of the runtime, which then synchronizes."""

    async def act(place: Place) -> None:
        await place.runtime.stop()
        await place.runtime.start()
        await place.in_step()

    return Step("restart the runtime", act)


def reconfigure(title: str, text: str) -> Step:
    """Replace the daemon's document."""

    async def act(place: Place) -> None:
        before = place.logged(_ACCEPTED)
        place.write_config(text)
        os.kill(place.pid, signal.SIGHUP)
        async with asyncio.timeout(PATIENCE):
            while place.is_up and place.logged(_ACCEPTED) == before:
                await place.ending(within=0.01)

    return Step(f"reconfigure: {title}", act)


_ACCEPTED: Final = "configuration.accepted"


async def _drop(made: Awaitable[object]) -> None:
    await made
