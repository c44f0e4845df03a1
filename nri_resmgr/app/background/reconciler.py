"""Reconcilers: bring parts of the host to the state that the policy wants.

There is one `Reconciler` for each part: settings of the host, RDT groups, block I/O
files. It decides when to act; an `Applier` decides what to write. The reconciler
exists from the start and imports little: few nodes need an applier.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, Protocol, TypeVar

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.config import PolicyConfig
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event, Synchronized

log = Logger(__name__)

PATIENCE: Final = 5.0
"""Seconds to restore the host at the end; the next start does the rest."""

# One step serves a burst of pods.
_PAUSE: Final = 0.1  # seconds between the end of a step and the next one


class ApplierStep(Protocol):
    """One round of an applier, with its inputs as values.

    The event loop goes on deciding while the step is applied.
    """

    def apply(self) -> None:
        """Write to the host; in a thread, never two steps at a time."""

    async def report(self) -> None:
        """Report what was done; in the event loop, after `apply`."""


class Applier(Protocol):
    """Computes the wanted state of one part of the host, and applies it.

    All methods but `restore` are called in the event loop.
    """

    @property
    def period(self) -> float | None:
        """Seconds between two steps that compare; None where nothing can drift."""

    def note(self, event: Event) -> bool:
        """Note a decided event; return whether a step may be due."""

    def configured(self) -> None:
        """Note that another configuration, or machine, is in force."""

    def next_step(self, *, looks: bool) -> ApplierStep | None:
        """Return the step to apply now; None for nothing to do.

        Args:
            looks: Whether to compare the host with what was applied before.
        """

    def restore(self) -> None:
        """Restore the host; in a thread, after the last step."""


A = TypeVar("A", bound=Applier)
A_co = TypeVar("A_co", bound=Applier, covariant=True)


class ReconcilerTarget(Protocol[A_co]):
    """A part of the host, without its applier, which is imported when needed."""

    def note(self, event: Event) -> bool:
        """Return whether this part may be wanted since a decided event."""

    def has_leftovers(self) -> bool:
        """Return whether an earlier process left changes; in a thread, and once."""

    def is_wanted(self) -> bool:
        """Return whether the policy or the configuration wants anything now."""

    async def make_applier(self) -> A_co:
        """Import the applier, and make one; called once."""

    def abandon(self, why: str) -> None:
        """Report that nothing is applied any more."""


class Reconciler(DecisionObserver, Generic[A]):
    """Applies the steps of one applier when they are due.

    A step is due once the first synchronization has been decided, then after
    decisions and configurations that concern the applier, and once per period. It
    runs in a thread, so that requests go on. All triggers during a step, and shortly
    after, lead to one more step.

    Args:
        name: The name of the part in log events.
        pause: Seconds between the end of a step and the next one.

    Attributes:
        applier: None until the part is wanted.
        problem: The reason why the reconciler has ended; empty while it runs.
    """

    def __init__(self, name: str, pause: float = _PAUSE) -> None:
        self.applier: A | None = None
        self.problem = ""
        self._name = name
        self._pause = pause
        self._target: ReconcilerTarget[A] | None = None
        # Before the containers of an earlier process are known, a step would undo
        # their settings, and the next one would apply them again.
        self._is_in_sync = False
        self._wake = asyncio.Event()
        # A thread cannot be cancelled: `close` waits for a running step.
        self._busy = threading.Lock()
        self._is_closed = False

    def decided(self, event: Event, decision: PolicyDecision) -> None:  # noqa: ARG002 - the step reads the state
        """Wake up if the event concerns the applier."""
        if not self._is_in_sync:
            # Synchronized without pods comes from a configuration, not the runtime.
            self._is_in_sync = isinstance(event, Synchronized) and (
                event.pods is not None
            )
            if self._is_in_sync:
                self._wake.set()
        # Also before the first synchronization: an applier collects what to do.
        part = self.applier or self._target
        may_be_due = part is not None and part.note(event)
        if may_be_due and self._is_in_sync:
            self._wake.set()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - the step reads it
        """Wake up."""
        if self.applier is not None:
            self.applier.configured()
        if self._is_in_sync:
            self._wake.set()

    async def run(self, target: ReconcilerTarget[A]) -> None:
        """Reconcile until cancelled.

        An exception ends it: a step may be half done, and only the journals have
        what was written.
        """
        self._target = target
        try:
            await self._run(target)
        except Exception as error:
            # `status` must show this instead of the outcome of the last step.
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
        """Restore the host; no step is applied afterwards.

        Args:
            patience: Seconds after which the process ends regardless.
        """
        self._is_closed = True
        if self.applier is None:
            return
        restore = self.applier.restore
        # A thread takes the lock: a step that hangs must not delay the end any longer.
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

    async def _run(self, target: ReconcilerTarget[A]) -> None:
        await self._wake.wait()
        self._wake.clear()  # triggers from here on lead to another step
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
            is_due = not await self._woken(due)
            # Constant triggers must not postpone the comparison.
            looks = is_due or (due is not None and now() >= due)

    async def _woken(self, due: float | None) -> bool:
        """Wait until a step may be due; return False at the deadline *due*."""
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _apply(self, step: ApplierStep) -> bool:
        with self._busy:
            if not self._is_closed:
                step.apply()
            # After `close` a report would be about settings that are restored.
            return not self._is_closed

    def _restore(self, restore: Callable[[], None]) -> None:
        try:
            with self._busy:
                restore()
        except Exception as error:
            log.error("reconciler.not-restored", part=self._name, exc_info=error)


T = TypeVar("T")


async def _in_thread(call: Callable[[], T]) -> T:
    """Call in a daemon thread, for which the process does not wait at its end.

    The process would wait for one of `asyncio.to_thread`, however long a file of the
    kernel hangs.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # cancellation must not reach the thread

    def work() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            answer.set_exception(error)

    threading.Thread(target=work, name="reconciler", daemon=True).start()
    return await asyncio.wrap_future(answer)
