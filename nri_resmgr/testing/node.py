"""A node: what exists on it, and the plugins that have a say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from nri_proto import Event, nri_pb2
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.testing.errors import ErrorReply, RuntimeRefusal, UpdatesFailed
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.profile import Profile
from nri_resmgr.testing.results import value_of
from nri_resmgr.testing.roster import Roster
from nri_resmgr.testing.rounds import (
    tell_all,
)
from nri_resmgr.testing.world import World


class Node:
    """Pods, containers and plugins, under one lock.

    Requests raise `RuntimeRefusal` when they fail. Some events cannot fail a
    request on the runtime that is played; what plugins answer to them goes to
    `ignored`.

    Attributes:
        world: What exists; for assertions and for setting the scene.
        ignored: Failures that the runtime would only log.
        unupdatable: Ids of containers whose updates fail.
        profile: The runtime that is played.
        roster: Its plugins.
        lock: Held during each event, as Go's adaptation holds one over all plugins.
    """

    def __init__(self, profile: Profile) -> None:
        self.world = World()
        self.ignored: list[RuntimeRefusal] = []
        self.unupdatable: set[str] = set()
        self.profile = profile
        self.roster = Roster()
        self.lock = asyncio.Lock()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods."""
        return tuple(value_of(pod) for pod in self.world.pods.values())

    @property
    def containers(self) -> tuple[Container, ...]:
        """All containers, exited ones too."""
        return tuple(value_of(item) for item in self.world.containers.values())

    def container(self, container_id: str) -> Container:
        """Return a container as it is now.

        Raises:
            KeyError: There is none.
        """
        container: Container = value_of(self.world.containers[container_id])
        return container

    async def serve_updates(self, updates: Sequence[nri_pb2.ContainerUpdate]) -> None:
        """Apply what a plugin asks for unasked, once no event is under way.

        Raises:
            ErrorReply: Some failed; a plugin is never told which.
        """
        async with self.lock:
            try:
                self.apply(updates, must_work=True)
            except UpdatesFailed as error:
                raise ErrorReply(str(error)) from error

    @asynccontextmanager
    async def _events(self) -> AsyncIterator[Sequence[ConnectedPlugin]]:
        async with self.lock:
            self.roster.drop_closed()
            try:
                yield tuple(self.roster.plugins)
            finally:
                self.roster.drop_closed()

    async def _tell(
        self,
        event: Event,
        pod: nri_pb2.PodSandbox,
        container: nri_pb2.Container | None = None,
    ) -> None:
        try:
            await tell_all(tuple(self.roster.plugins), event, pod, container)
        except RuntimeRefusal as refusal:
            self.ignored.append(refusal)

    def apply(
        self, updates: Sequence[nri_pb2.ContainerUpdate], *, must_work: bool
    ) -> None:
        """Apply updates to the world.

        Raises:
            UpdatesFailed: Some failed and *must_work* is set.
        """
        failed = []
        for update in updates:
            if update.container_id not in self.unupdatable:
                self.world.update(
                    update.container_id,
                    update.linux.resources,
                    all_fields=self.profile.is_crio,
                )
            elif not update.ignore_failure:
                failed.append(update.container_id)
        if not failed:
            return
        failure = UpdatesFailed(tuple(failed))
        if must_work:
            raise failure
        self.ignored.append(failure)
