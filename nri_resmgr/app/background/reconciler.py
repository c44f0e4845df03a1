"""Brings a part of the host to what the policy and the configuration want.

One `Reconciler` for each part: settings of the host, RDT groups, block I/O files. It
knows when to act; what is to be done, and how, an `Applier` knows. The reconciler is
there from the start and imports little: few nodes need an applier.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Generic, Protocol, TypeVar

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.config import PolicyConfig
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, Synchronized

log = Logger(__name__)

PATIENCE: Final = 5.0
"""Seconds for putting everything back at the end; the next start does the rest."""

# Of a burst of pods, one step has to do for many.
_PAUSE: Final = 0.1  # seconds between the end of a step and the next one


class Step(Protocol):
    """One round of an applier, with all that it needs as values.

    The event loop goes on deciding while the step is applied.
    """

    def apply(self) -> None:
        """Write to the host; in a thread, and never two steps at a time."""

    async def report(self) -> None:
        """Report what was done; in the event loop, after `apply`."""


class Applier(Protocol):
    """Knows what one part of the host should be like, and makes it so.

    All methods but `restore` are called in the event loop.
    """

    @property
    def period(self) -> float | None:
        """Seconds between two steps that look; None while there is nothing to see."""

    def note(self, event: Event) -> bool:
        """Note an event that was decided; return whether a step may be due."""

    def configured(self) -> None:
        """Note that another configuration, or machine, is in force."""

    def next_step(self, *, looks: bool) -> Step | None:
        """Return what is to be done now; None for nothing.

        Args:
            looks: Whether to compare the host with what was applied before.
        """

    def restore(self) -> None:
        """Put the host back; in a thread, after the last step."""


A = TypeVar("A", bound=Applier)
A_co = TypeVar("A_co", bound=Applier, covariant=True)


class Target(Protocol[A_co]):
    """A part of the host, as much as is known before its applier is imported."""

    def note(self, event: Event) -> bool:
        """Return whether this part may be wanted since an event was decided."""

    def has_leftovers(self) -> bool:
        """Tell whether an earlier process left changes; in a thread, and once."""

    def is_wanted(self) -> bool:
        """Tell whether the policy or the configuration wants anything now."""

    async def make_applier(self) -> A_co:
        """Import the applier, and make one; called when it is needed, and once."""

    def abandon(self, why: str) -> None:
        """Report that nothing is applied any more."""


class Reconciler(DecisionObserver, Generic[A]):
    """Has the steps of one applier applied when they are due.

    A step is due once the first synchronization has been decided, then after
    decisions and configurations that concern the applier, and once per period. It
    runs in a thread, so that requests go on. What comes while it runs, and shortly
    after, makes one more step together.

    Args:
        name: Of the part, as in log events.
        pause: Seconds between the end of a step and the next one.

    Attributes:
        applier: None until the part is wanted.
        problem: Why the reconciler has ended; empty while it runs.
    """

    def __init__(self, name: str, pause: float = _PAUSE) -> None:
        self.applier: A | None = None
        self.problem = ""
        self._name = name
        self._pause = pause
        self._target: Target[A] | None = None
        # Containers of an earlier process have their share in what the host is
        # like: without them, all of it would be undone and done again.
        self._is_in_sync = False
        self._wake = asyncio.Event()
        # A thread cannot be cancelled: the end has to wait for a step that runs.
        self._busy = threading.Lock()
        self._is_closed = False

    def decided(self, event: Event, decision: Decision[Any]) -> None:  # noqa: ARG002 - the step looks up the state
        """Wake up if the event concerns the applier."""
        if not self._is_in_sync:
            # One that a configuration causes does not name the pods.
            self._is_in_sync = isinstance(event, Synchronized) and (
                event.pods is not None
            )
            if self._is_in_sync:
                self._wake.set()
        part = self.applier or self._target
        is_concerned = part is not None and part.note(event)
        if is_concerned and self._is_in_sync:
            self._wake.set()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - the step looks it up
        """Wake up."""
        if self.applier is not None:
            self.applier.configured()
        if self._is_in_sync:
            self._wake.set()

    async def run(self, target: Target[A]) -> None:
        """Reconcile until cancelled.

        A fault ends it: half of a step may have been done, and what it did is known
        to the journals only.
        """
        self._target = target
        try:
            await self._run(target)
        except Exception as error:
            # `status` must not show the outcome of the last step as the present one.
            what = f"{type(error).__name__}: {error}"
            self.problem = f"it was abandoned after a fault, {what}"
            target.abandon(self.problem)
            raise

    async def reconcile(self, *, looks: bool) -> None:
        """Apply one step now, if there is anything to do.

        Args:
            looks: Whether to compare the host with what was applied before.
        """
        if self.applier is None:
            return
        step = self.applier.next_step(looks=looks)
        if step is not None and await _in_thread(lambda: self._apply(step)):
            await step.report()

    def close(self, patience: float = PATIENCE) -> None:
        """Put the host back; no step is applied afterwards.

        Args:
            patience: Seconds after which the process ends all the same.
        """
        self._is_closed = True
        if self.applier is None:
            return
        restore = self.applier.restore
        thread = threading.Thread(
            target=self._restore, args=(restore,), name=self._name, daemon=True
        )
        thread.start()
        thread.join(patience)
        if thread.is_alive():
            why = "it takes too long"
            log.error(
                "reconciler.not-restored", part=self._name, why=why, after=patience
            )

    async def _run(self, target: Target[A]) -> None:
        await self._wake.wait()
        self._wake.clear()
        is_left = await _in_thread(target.has_leftovers)
        now, looks, due = asyncio.get_running_loop().time, False, None
        while True:
            if self.applier is None and (is_left or target.is_wanted()):
                self.applier = await target.make_applier()
            await self.reconcile(looks=looks)
            await asyncio.sleep(self._pause)
            period = self.applier.period if self.applier else None
            if period is None:
                due = None
            elif due is None or looks:
                due = now() + until_tick(period)
            is_time = not await self._woken(due)
            # Where pods come and go all the time, the period counts all the same.
            looks = is_time or (due is not None and now() >= due)

    async def _woken(self, due: float | None) -> bool:
        """Wait until a step may be due; return False where only time has passed."""
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _apply(self, step: Step) -> bool:
        with self._busy:
            if not self._is_closed:
                step.apply()
            return not self._is_closed

    def _restore(self, restore: Callable[[], None]) -> None:
        try:
            with self._busy:
                restore()
        except Exception as error:
            log.error("reconciler.not-restored", part=self._name, exc_info=error)


T = TypeVar("T")


async def _in_thread(call: Callable[[], T]) -> T:
    """Call in a thread of its own, for which the process does not wait at its end.

    That of `asyncio.to_thread` is waited for, however long a file of the kernel hangs.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # whoever awaits it cannot cancel it now

    def work() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            answer.set_exception(error)

    threading.Thread(target=work, name="reconciler", daemon=True).start()
    return await asyncio.wrap_future(answer)
