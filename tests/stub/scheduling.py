"""A plugin that has updates for later, and something to update."""

from __future__ import annotations

from nri_resmgr.stub import Container, ContainerUpdate, LinuxResources, Pod, Stub
from nri_resmgr.testing import Runtime


def cpus(container_id: str, text: str = "3") -> ContainerUpdate:
    """Make an update of the CPUs."""
    return ContainerUpdate(container_id).set_cpus(text)


async def containers_in(runtime: Runtime, count: int) -> Pod:
    """Create a pod with the containers ctr0, ctr1, and so on."""
    pod = await runtime.run_pod(Pod())
    for _ in range(count):
        await runtime.create_container(pod.id, Container())
    return pod


class Scheduler:
    """Schedules updates in one event, and returns some in others."""

    def __init__(self, *scheduled: ContainerUpdate) -> None:
        self.stub: Stub | None = None
        self.scheduled = list(scheduled)
        self.returned: list[ContainerUpdate] = []

    def start_container(self, _: Pod, __: Container) -> None:
        """Schedule; this event's reply can carry nothing."""
        assert self.stub is not None
        for update in self.scheduled:
            self.stub.schedule_updates([update])

    def create_container(self, _: Pod, __: Container) -> None:
        """Carry what waits."""

    def update_container(
        self, _: Pod, __: Container, ___: LinuxResources
    ) -> list[ContainerUpdate]:
        """Return what is to be returned."""
        return self.returned

    def stop_container(self, _: Pod, __: Container) -> list[ContainerUpdate]:
        """Return what is to be returned."""
        return self.returned

    def remove_container(self, _: Pod, __: Container) -> None:
        """Hear of the end of a container."""
