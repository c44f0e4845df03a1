"""Reconcilers: bring parts of the host to the state that the policy wants.

There is one `Reconciler` for each part: settings of the host, RDT groups, block I/O
files. It decides when to act; an `Applier` decides what to write. The reconciler
exists from the start and imports little: few nodes need an applier.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.threads import in_thread, start_last_thread
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
        """Return whether an earlier process left changes; in a thread."""

    def is_wanted(self) -> bool:
        """Return whether the policy or the configuration wants anything now."""

    async def make_applier(self) -> A_co:
        """Import the applier, and make one; again after a fault.

        A step may be half done then, and only the journals have what was written: they
        are read as after a restart of the process.
        """

    def note_fault(self, why: str) -> None:
        """Report that nothing is applied after a fault; empty once it is again."""


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
        problem: The fault since which no step was applied; empty without one.
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
        """Reconcile until cancelled; call it again after an exception.

        Raises:
            Exception: A fault. The next call makes another applier.
        """
        self._target = target
        try:
            await self._run(target)
        except Exception as error:
            # `status` must show this instead of the outcome of the last step.
            what = f"{type(error).__name__}: {error}"
            self._note_fault(f"nothing is applied since a fault, {what}")
            raise

    def _note_fault(self, why: str) -> None:
        self.problem = why
        if self._target is not None:
            self._target.note_fault(why)

    async def reconcile(self, *, looks: bool) -> None:
        """Apply one step now, if there is anything to do.

        Args:
            looks: Whether to compare the host with what was applied before.
        """
        if self.applier is None:
            return
        step = self.applier.next_step(looks=looks)
        if step is not None and await in_thread(lambda: self._apply(step)):
            await step.report()

    def begin_close(self) -> Callable[[float], None]:
        """Begin to restore the host; no step is applied afterwards.

        Returns:
            Waits until the host is restored, for at most so many seconds.
        """
        self._is_closed = True
        if self.applier is None:
            return lambda _: None
        restore = self.applier.restore
        # A thread takes the lock: a step that hangs must not delay the end any longer.
        thread = start_last_thread(lambda: self._restore(restore))

        def wait(patience: float) -> None:
            if thread is None:
                return
            thread.join(patience)
            if thread.is_alive():
                log.error(
                    "reconciler.not-restored",
                    part=self._name,
                    why="it takes too long",
                    after=round(patience, 3),
                )

        return wait

    def close(self, patience: float = PATIENCE) -> None:
        """Restore the host; no step is applied afterwards.

        Args:
            patience: Seconds after which the process ends regardless.
        """
        self.begin_close()(patience)

    async def _run(self, target: ReconcilerTarget[A]) -> None:
        is_again = bool(self.problem)
        if not is_again:
            await self._wake.wait()
        self._wake.clear()  # triggers from here on lead to another step
        if self.applier is not None:
            # The old one stays until then: it can restore what it wrote.
            self.applier = await target.make_applier()
        is_left = self.applier is None and await in_thread(target.has_leftovers)
        now, looks, due = asyncio.get_running_loop().time, is_again, None
        while True:
            if self.applier is None and (is_left or target.is_wanted()):
                self.applier = await target.make_applier()
            await self.reconcile(looks=looks)
            if self.problem:
                self._note_fault("")
            await asyncio.sleep(self._pause)
            period = self.applier.period if self.applier else None
            if period is None:
                due = None
            else:
                # A failed step is repeated sooner than it would be compared.
                next_due = now() + until_tick(period)
                due = next_due if due is None or looks else min(due, next_due)
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
            # Other parts are still to be restored, and the process ends.
            log.error("reconciler.not-restored", part=self._name, exc_info=error)
