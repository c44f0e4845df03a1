"""Applier of block I/O classes: cgroup files of running containers as configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.classes.blockio.record import BlockIoRecord
from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
from nri_resmgr.app.classes.members import Member, members_of
from nri_resmgr.app.classes.placed import blockio_choice
from nri_resmgr.app.classes.unified import with_unified
from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.classes.blockio import BlockIoConfig
from nri_resmgr.policy.events import Event, Synchronized, Updated
from nri_resmgr.stub.update import ContainerUpdate

Files: TypeAlias = Mapping[str, Mapping[str, str]]
"""Files and their contents, by container."""

PERIOD: Final = 30.0  # seconds between two searches for devices: disks come and go


class BlockIoFiles:
    """Applies block I/O classes to running containers; an `Applier`."""

    def __init__(
        self,
        policy: UpdatingPolicy,
        writer: BlockIoWriter,
        record: BlockIoRecord,
        period: float = PERIOD,
    ) -> None:
        self.writer = writer
        self._period = period
        self._subject = policy
        self._record = record
        self._written: dict[str, Mapping[str, str]] = {}

    @property
    def period(self) -> float | None:
        """Seconds until the next comparison."""
        return self.writer.host.problems.period(self._period)

    def configured(self) -> None:
        """Remove the problems of the previous configuration."""
        self.writer.host.problems.forget()

    def note(self, event: Event) -> bool:
        """Return whether containers were listed, or an adjustment may have changed."""
        return isinstance(event, Synchronized | Updated)

    def next_step(self, *, looks: bool) -> BlockIoStep:  # noqa: ARG002 - every step searches for devices
        """Return a step for all containers."""
        host = self.writer.host
        config, members = self._wanted()
        entries = self._subject.state.ledger.entries
        host.keep_only(entries.keys())
        for gone in self._written.keys() - entries.keys():
            del self._written[gone]
        host.problems.keep_only({one.title for one in members})
        return BlockIoStep(self, config, members)

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Return the files of a container that were written since its creation."""
        if not (files := self._written.get(container)):
            return None
        # The files are written already, so a failure, as of a removed container, is
        # harmless.
        return with_unified(ContainerUpdate(container), files).ignoring_failure()

    async def finish(self, written: Files) -> None:
        """Send the written files to the runtime, and record them for the next start."""
        if written:
            self._written |= written
            # Otherwise the runtime restores its old values with its next update.
            self._subject.updates.send(self.update_of, written)
        await in_thread(lambda: self._record.save(self.writer.host))

    def restore(self) -> None:
        """Do nothing: the files end with their containers."""

    def _wanted(self) -> tuple[BlockIoConfig, tuple[Member, ...]]:
        subject = self._subject
        use, policy, state = subject.config.blockio, subject.policy, subject.state
        if use is None or use.classes is None:
            return {}, tuple(members_of(subject, lambda _: None))
        return use.classes, tuple(
            members_of(subject, lambda spec: blockio_choice(spec, use, policy, state))
        )


@attrs.define(eq=False)
class BlockIoStep:
    """Classes and containers at one moment."""

    files: BlockIoFiles
    config: BlockIoConfig
    members: tuple[Member, ...]
    _written: Files = attrs.field(factory=dict, init=False)

    def apply(self) -> None:
        """Write the files that have changed."""
        writer = self.files.writer
        # Classes of the runtime, set by name, are never changed here.
        if self.config or writer.host.applied:
            self._written = writer.write(self.config, self.members)

    async def report(self) -> None:
        """Send the written files to the runtime, and record them."""
        await self.files.finish(self._written)
