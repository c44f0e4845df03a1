"""Block I/O files of running containers: as configured, on the disks there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from nri_resmgr.app.blockio import blockio_choice
from nri_resmgr.app.blockio_record import BlockIoRecord
from nri_resmgr.app.blockio_writer import BlockIoWriter
from nri_resmgr.app.class_members import Member, members_of
from nri_resmgr.app.courier import Runtime
from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.app.unified import with_unified
from nri_resmgr.classes.blockio import BlockIoConfig
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event, Synchronized
from nri_resmgr.stub.errors import SessionError, UnsolicitedUpdatesUnsafe
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

News: TypeAlias = Mapping[str, Mapping[str, str]]
"""Files by container."""

PERIOD: Final = 30.0  # seconds between two looks for disks


class BlockIoFiles:
    """Applies block I/O classes to running containers; an `Applier`.

    Args:
        policy: Knows the containers.
        writer: Writes files.
        record: Keeps what was written.
        runtime: Takes what was written.
        period: Seconds between two looks for disks.

    Attributes:
        writer: Writes files.
        period: Seconds between two looks for disks.
    """

    def __init__(
        self,
        policy: ResourcePolicy,
        writer: BlockIoWriter,
        record: BlockIoRecord,
        runtime: Runtime,
        period: float = PERIOD,
    ) -> None:
        self.writer = writer
        self.period: float | None = period
        self._subject = policy
        self._record = record
        self._runtime = runtime

    def configured(self) -> None:
        """Forget problems: they were those of another configuration."""
        self.writer.host.problems.forget()

    def note(self, event: Event) -> bool:
        """Have all containers looked at when the runtime lists them."""
        return isinstance(event, Synchronized)

    def next_step(self, *, looks: bool) -> BlockIoStep:  # noqa: ARG002 - it always looks
        """Return the classes and all containers."""
        host = self.writer.host
        config, members = self._wanted()
        host.keep_only(self._subject.state.ledger.entries.keys())
        host.problems.keep_only({one.title for one in members})
        return BlockIoStep(self, config, members)

    async def finish(self, news: News) -> None:
        """Send what was written to the runtime, and keep it for the next start."""
        if news:
            await self._tell(news)
        await asyncio.to_thread(self._record.save, self.writer.host)

    def restore(self) -> None:
        """Do nothing: the files go with their containers."""

    def _wanted(self) -> tuple[BlockIoConfig, tuple[Member, ...]]:
        subject = self._subject
        use, policy, state = subject.config.blockio, subject.policy, subject.state
        if use is None or use.classes is None:
            return {}, tuple(members_of(subject, lambda _: None))
        return use.classes, tuple(
            members_of(subject, lambda spec: blockio_choice(spec, use, policy, state))
        )

    async def _tell(self, news: News) -> None:
        """Tell the runtime, which keeps files and writes them with its next update."""
        try:
            failed = await self._runtime.update_containers(_updates(news))
        except UnsolicitedUpdatesUnsafe:
            self._subject.class_hosts.leave_untold(news)
        except SessionError as error:
            self._subject.class_hosts.leave_untold(news)
            log.warning("blockio.runtime-not-told", why=str(error))
        else:
            if failed:
                ids = [one.container_id for one in failed]
                log.warning("blockio.runtime-not-told", why="refused", containers=ids)


@attrs.define(eq=False)
class BlockIoStep:
    """Block I/O classes and containers at one moment.

    Attributes:
        files: Where it is applied.
        config: The classes.
        members: All containers.
    """

    files: BlockIoFiles
    config: BlockIoConfig
    members: tuple[Member, ...]
    _news: News = attrs.field(factory=dict, init=False)

    def apply(self) -> None:
        """Write the files that have changed."""
        writer = self.files.writer
        # A class that the runtime gave by its name stays as long as the container.
        if self.config or writer.host.given:
            self._news = writer.put(self.config, self.members)

    async def report(self) -> None:
        """Send the runtime what was written, and keep it."""
        await self.files.finish(self._news)


def _updates(news: News) -> tuple[ContainerUpdate, ...]:
    told: Iterable[ContainerUpdate] = (
        with_unified(ContainerUpdate(key), files) for key, files in news.items()
    )
    # The files are written already: whoever is gone meanwhile does not matter.
    return tuple(one.ignoring_failure() for one in told)
