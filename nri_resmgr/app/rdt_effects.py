"""RDT follows decisions and configurations: noticed at once, done in a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final

import msgspec

from nri_resmgr.app.class_members import Member, Subject, members_of
from nri_resmgr.app.rdt import rdt_choice
from nri_resmgr.app.rdt_host import RdtHost
from nri_resmgr.app.rdt_work import RdtWork
from nri_resmgr.app.witness import Witness
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.rdt_use import RdtUse
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, PodStopped, Started, Synchronized

# How often all that runs is looked at: a process that the runtime starts in a
# container later is of the class that the container was created with.
PERIOD: Final = 30.0  # seconds


class _Job(msgspec.Struct, frozen=True):
    """What is to be done, as values: the state goes on meanwhile."""

    use: RdtUse | None
    members: tuple[Member, ...]
    due: tuple[Member, ...]
    pods: frozenset[str] | None
    is_new: bool


class RdtEffects(Witness):
    """Notices what is to be done, and has it done while it runs.

    Args:
        subject: Whose containers they are.
        host: How it stands with the groups.
        work: Does it.
        period: Seconds after which all containers are looked at again.

    Attributes:
        is_in_sync: Whether the runtime has told what runs.
    """

    def __init__(
        self, subject: Subject, host: RdtHost, work: RdtWork, period: float = PERIOD
    ) -> None:
        self._subject = subject
        self._host = host
        self._work = work
        self._period = period
        self._is_new = True  # the configuration
        self._is_whole = True  # everybody is to be looked at
        self.is_in_sync = False
        self._started: set[str] = set()
        self._pods: dict[str, str] = {}
        self._wake = asyncio.Event()
        # Who stops must not come between: a thread cannot be cancelled.
        self._busy = threading.Lock()
        self._is_closed = False

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - the subject has it
        """Make the groups that are wanted now."""
        self._host.unsettle()
        self._is_new = self._is_whole = True
        self._wake.set()

    def decided(self, event: Event, decision: Decision[Any]) -> None:  # noqa: ARG002 - the state is looked up later
        """Look at who starts, and at everybody when all are told anew."""
        match event:
            case Started(container):
                self._started.add(container)
            case Synchronized():
                self.is_in_sync = self._is_whole = True
            case PodStopped(pod):
                if self._pods.pop(pod, None) is None:
                    return
            case _:
                return
        self._wake.set()

    async def run(self) -> None:
        """Do what is to be done, until cancelled."""
        while True:
            await asyncio.to_thread(self._do, self._next_job())
            if not self._wake.is_set() and not await self._woken():
                self._is_whole = True
            self._wake.clear()

    def close(self) -> None:
        """Take everything back; nothing is done after this."""
        with self._busy:
            self._is_closed = True
            self._work.restore()

    async def _woken(self) -> bool:
        try:
            async with asyncio.timeout(self._period):
                return await self._wake.wait()
        except TimeoutError:
            return False

    def _members(self, use: RdtUse | None) -> tuple[Member, ...]:
        if use is None:
            return ()
        subject = self._subject
        policy, state = subject.policy, subject.state
        for entry in state.ledger.entries.values():
            if entry.spec.pod_uid:
                self._pods[entry.spec.pod] = entry.spec.pod_uid
        return tuple(
            members_of(subject, lambda spec: rdt_choice(spec, use, policy, state))
        )

    def _next_job(self) -> _Job:
        use = self._subject.config.rdt
        members = self._members(use)
        started = tuple(one for one in members if one.whom.id in self._started)
        job = _Job(
            use,
            members,
            members if self._is_whole else started,
            # Before the runtime tells what runs, nobody knows who is gone.
            frozenset(self._pods.values()) if members or self.is_in_sync else None,
            self._is_new,
        )
        self._is_new = self._is_whole = False
        self._started.clear()
        return job

    def _do(self, job: _Job) -> None:
        with self._busy:
            if self._is_closed:
                return
            use, work = job.use, self._work
            self._host.troubles.keep_only({one.title for one in job.members})
            if job.is_new or work.is_due(use):
                work.set_up(use, job.members)
            if use is not None:
                work.put(job.due, monitors=use.monitors)
                work.look()
                if job.pods is not None:
                    work.prune(job.pods if use.monitors else ())
