"""Block I/O of running containers follows configurations, and disks that come."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from nri_resmgr.app.blockio import blockio_choice
from nri_resmgr.app.blockio_record import BlockIoRecord
from nri_resmgr.app.blockio_work import BlockIoWork
from nri_resmgr.app.class_members import Member, members_of
from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.app.unified import with_unified
from nri_resmgr.app.witness import Witness
from nri_resmgr.classes.blockio import BlockIoConfig
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, Synchronized
from nri_resmgr.stub.update import ContainerUpdate

PERIOD: Final = 30.0  # seconds between two looks for disks


class BlockIoEffects(Witness):
    """Has what changes written, while it runs.

    Args:
        policy: Whose containers they are.
        work: Writes it.
        record: Keeps what was written.
        period: Seconds after which disks are looked for again.

    Attributes:
        is_in_sync: Whether the runtime has told what runs.
    """

    def __init__(
        self,
        policy: ResourcePolicy,
        work: BlockIoWork,
        record: BlockIoRecord,
        period: float = PERIOD,
    ) -> None:
        self._subject = policy
        self._work = work
        self._record = record
        self.is_in_sync = False
        self._written: dict[str, Mapping[str, str]] = {}
        self._period = period
        self._wake = asyncio.Event()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - the subject has it
        """Look at everybody."""
        self._work.host.troubles.forget()
        self._wake.set()

    def decided(self, event: Event, decision: Decision[Any]) -> None:  # noqa: ARG002 - the state is looked up later
        """Look at everybody when all are told anew."""
        if isinstance(event, Synchronized):
            self.is_in_sync = True
            self._wake.set()

    async def run(self) -> None:
        """Do what is to be done, until cancelled."""
        await asyncio.to_thread(self._record.load, self._work.host)
        while True:
            await self._put()
            try:
                async with asyncio.timeout(self._period):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Return the files of a container that have changed since its creation."""
        if not (files := self._written.get(container)):
            return None
        # The files are written already: a failure, of a container that is gone,
        # does not matter.
        return with_unified(ContainerUpdate(container), files).ignoring_failure()

    async def _put(self) -> None:
        host, entries = self._work.host, self._subject.state.ledger.entries
        if not entries and not self.is_in_sync:
            return  # nobody has told yet what runs
        host.keep_only(entries.keys())
        for gone in self._written.keys() - entries.keys():
            del self._written[gone]
        config, members = self._wanted()
        host.troubles.keep_only({one.title for one in members})
        # A class that the runtime gave by its name stays as long as the container.
        if config or host.given:
            news = await asyncio.to_thread(self._work.put, config, members)
            if news:
                self._written |= news
                # Else the runtime writes its old values with its next update.
                self._subject.updates.send(self.update_of, news)
        await asyncio.to_thread(self._record.save, host)

    def _wanted(self) -> tuple[BlockIoConfig, tuple[Member, ...]]:
        subject = self._subject
        use, policy, state = subject.config.blockio, subject.policy, subject.state
        if use is None or use.classes is None:
            return {}, tuple(members_of(subject, lambda _: None))
        return use.classes, tuple(
            members_of(subject, lambda spec: blockio_choice(spec, use, policy, state))
        )
