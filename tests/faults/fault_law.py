"""The law: after any fault, all works again within 30 s, or health fails."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from tests.faults.cases import ERRORS, Case, chosen
from tests.faults.faulty_node import FaultyNode, faulty_node
from tests.faults.node_daemon import json_of
from tests.faults.node_pods import PROBE, VISITOR
from tests.faults.oracle import LOOK, Broken, Oracle
from tests.faults.phases import ACT, END, PHASES, START
from tests.faults.system_calls import ALWAYS, HANG, Fault, Point, SystemCalls

_PATIENCE: Final = 30.0  # seconds, which the law gives to all repairs
_LASTING: Final = 2.0  # seconds of a fault that is always there, or that hangs
_FOLLOWS: Final = 1.2  # seconds after a reply: checkpoint, host, units of systemd
_TAIL: Final = 60  # lines of a log that are shown
_ORDERLY: Final = 15.0  # seconds for an end, some of which a file may hang


@attrs.define(eq=False)
class Outcome:
    """What a case led to.

    Attributes:
        broken: How the law was broken; empty if it holds.
        detail: Then, and after a crash, the rest of the log, with the stacks of all
            threads.
        is_hit: Whether any fault struck.
        has_ended: Whether the daemon ended, and was started again.
        admitted: What did not work while health failed; empty if all works.
        has_crashed: Whether the interpreter crashed without memory.
        seconds: From the end of the faults until all worked.
    """

    case: Case
    broken: str = ""
    detail: str = ""
    is_hit: bool = False
    has_ended: bool = False
    has_crashed: bool = False
    admitted: str = ""
    seconds: float = 0.0


_CRASHES: Final = (-signal.SIGSEGV, -signal.SIGABRT)
_TRACEBACK: Final = "Traceback "
_CRASH: Final = "Fatal Python error: "

# Periodic rebalances, looks at the folder of the cluster, and signals for systemd go on
# in all phases, by chance: these are enough.
_ENOUGH: Final = {
    "cpu-time": (START, "idle", "scrape"),
    "notify": (START, "idle", END),
    "spool": (START, "idle", "cluster", "reload"),
}

# A process that talks to itself: the kernel refuses none of these.
_INTERNAL: Final = ("socket", "internal")


class Law:
    """Holds the law against one node, case by case.

    Args:
        node: With its runtime, and no daemon.
    """

    def __init__(self, node: FaultyNode) -> None:
        self.node = node
        self.oracle = Oracle(node)

    @property
    def calls(self) -> SystemCalls:
        """Those of the present daemon."""
        assert self.node.daemon.calls is not None
        return self.node.daemon.calls

    async def begin(self) -> None:
        """Run a daemon without faults, and record what it grants."""
        node = self.node
        await node.daemon.launch()
        await node.daemon.in_step()
        await self.oracle.record()
        await self.oracle.rest()
        node.daemon.new_lines()

    async def record(self, phase: str) -> Counter[Point]:
        """Count the points of a phase without faults."""
        node = self.node
        if phase == "remove":
            await node.place(VISITOR)
        if phase in (START, END):
            await self._stop()
            await node.daemon.launch()
        else:
            self.calls.counts.clear()
            await PHASES[phase](node)
        if phase in (START, END):
            await node.daemon.in_step()
        # Checkpoint and host follow the reply, and then units of systemd.
        await asyncio.sleep(_FOLLOWS)
        if phase == END:
            await self.oracle.rest()
            self.calls.counts.clear()
            await node.daemon.end()
        counts = Counter(
            {
                point: count
                for point, count in self.calls.counts.items()
                if point.place not in _INTERNAL
                and point.call in ERRORS
                and phase in _ENOUGH.get(point.place, (phase,))
            }
        )
        if phase == END:
            await node.daemon.settle()
            await node.daemon.launch()
        await node.remove(VISITOR.name)
        await node.daemon.in_step()
        await self.oracle.rest()
        return counts

    async def hold(self, case: Case) -> Outcome:
        """Make the faults of a case, and hold the law against what follows."""
        outcome = Outcome(case)
        faults = [Fault.from_text(one) for one in case.faults]
        try:
            if case.phase != START and not self.node.daemon.sees_all:
                await self._stop()
                await self.node.daemon.launch()
                await self.node.daemon.in_step()
                await self.oracle.rest()
            await self._inject(case.phase, faults, outcome)
            outcome.is_hit = any(fault.hits for fault in faults)
            begun = time.monotonic()
            await self._recover(outcome, begun)
            outcome.seconds = time.monotonic() - begun
            self._check_log(case)
        except (Broken, TimeoutError) as broken:
            outcome.broken = str(broken) or "the runtime and the daemon do not meet"
            outcome.detail = await self._stacks()
            await self._afresh()
        else:
            if _has_no_memory(case):
                # CPython may crash later, too: after a thread that could not begin
                # its states of threads are not consistent.
                await self._stacks()
                await self._afresh()
        return outcome

    async def _inject(self, phase: str, faults: list[Fault], outcome: Outcome) -> None:
        node = self.node
        lasts = any(one.error == HANG or one.times == ALWAYS for one in faults)
        if phase == START:
            await self._stop()
            calls = await node.daemon.launch(*faults, sees_all=False)
            started = asyncio.create_task(node.daemon.in_step())
            await self._struck(faults, within=_PATIENCE, unless=started)
            if lasts:
                await asyncio.sleep(_LASTING)
            else:
                await asyncio.wait({started}, timeout=_PATIENCE)
                await self._struck(faults)
            started.cancel()
            await asyncio.wait({started})
        elif phase == END:
            calls = self.calls
            calls.arm(*faults)
            assert node.daemon.process is not None
            node.daemon.process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_ORDERLY):
                    await node.daemon.process.wait()
            except TimeoutError:
                raise Broken(f"SIGTERM does not end it in {_ORDERLY} s") from None
            outcome.has_ended = True
        else:
            if phase == "remove":
                await node.place(VISITOR)
            calls = self.calls
            calls.arm(*faults)
            begun = time.monotonic()
            await self._meanwhile(PHASES[phase](node))
            if lasts:
                rest = _LASTING - (time.monotonic() - begun)
                await asyncio.sleep(max(0.0, rest))
            else:
                # What follows a reply: the checkpoint, settings of the host.
                await self._struck(faults)
        calls.disarm()

    async def _meanwhile(self, act: Awaitable[None]) -> None:
        with suppress(Exception):
            async with asyncio.timeout(ACT):
                await act

    async def _struck(
        self,
        faults: list[Fault],
        within: float = _FOLLOWS,
        unless: asyncio.Task[None] | None = None,
    ) -> None:
        """Wait until all faults have struck, but not for long."""
        until = time.monotonic() + within
        while time.monotonic() < until and not (unless and unless.done()):
            await asyncio.sleep(LOOK)
            if all(one.hits for one in faults):
                return

    async def _recover(self, outcome: Outcome, begun: float) -> None:
        """Wait until all works, with a new process where the old one ended."""
        node = self.node
        try:
            if node.daemon.is_up:
                # One that ends in order takes its time.
                await self.oracle.works(begun + _PATIENCE)
                return
        except Broken as broken:
            if node.daemon.is_up:
                await self._admitted(str(broken))
                outcome.admitted = str(broken)
        outcome.has_ended = True
        self._check_end(outcome)
        await node.daemon.settle()
        await node.daemon.launch(sees_all=outcome.case.phase != START)
        self.oracle.forget_resources()
        try:
            await node.daemon.in_step()
        except TimeoutError:
            raise Broken("the next process does not register") from None
        await self.oracle.works(time.monotonic() + _PATIENCE)
        await self.oracle.rest()

    async def _admitted(self, broken: str) -> None:
        """Accept what does not work only if health fails."""
        try:
            status, text = await self.node.daemon.get("/healthz")
        except (OSError, ValueError):
            status, text = 503, "no answer"
        if status == 200:
            raise Broken(f"{broken}; but health is {text.strip()!r}")
        assert self.node.daemon.process is not None
        self.node.daemon.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_ORDERLY):
                await self.node.daemon.process.wait()
        except TimeoutError:
            why = f"{broken}; health fails, but SIGTERM does not end it"
            raise Broken(why) from None

    def _check_end(self, outcome: Outcome) -> None:
        assert self.node.daemon.process is not None
        status = self.node.daemon.process.returncode
        # CPython itself crashes where a C function of it does not expect to get no
        # memory, its compiler and its threads for instance.
        if status in _CRASHES and _has_no_memory(outcome.case):
            outcome.has_crashed = True
            outcome.detail = self._tail()
            self._skip_crash()
            return
        if status == -signal.SIGALRM and _has_no_thread_for_a_hang(outcome.case):
            return  # its own limit
        if status is None or status < 0:
            raise Broken(f"it ended with status {status}")
        if status == 0 and outcome.case.phase != END and not outcome.admitted:
            raise Broken("it ended with status 0, though nothing requested it")

    def _skip_crash(self) -> None:
        """Check what was logged before a crash of the interpreter."""
        lines = self.node.daemon.new_lines()
        crash = [number for number, line in enumerate(lines) if _CRASH in line]
        self._check_lines(lines[: crash[0]] if crash else lines)

    def _check_log(self, case: Case) -> None:
        lines = self.node.daemon.new_lines()
        if _has_no_memory(case):
            # The interpreter has a few words of its own, without a traceback.
            lines = [one for one in lines if json_of(one) or _TRACEBACK in one]
        self._check_lines(lines)

    def _check_lines(self, lines: Iterable[str]) -> None:
        has_ended = False  # then the destructors of the interpreter may complain
        for line in lines:
            found = json_of(line)
            if found is not None:
                has_ended = False
                if "exception" in found and not found.get("why"):
                    raise Broken(f"a traceback without a reason: {line}")
            else:
                has_ended = has_ended or line.startswith("nri-resmgr: ")
                if not has_ended:
                    raise Broken(f"standard error: {line!r}")

    async def _stop(self) -> None:
        node = self.node
        if node.daemon.is_up and (status := await node.daemon.end()):
            raise Broken(f"SIGTERM ended it with status {status}")
        await node.daemon.settle()

    async def _stacks(self) -> str:
        """End a daemon that breaks the law; return what it logged last."""
        node = self.node
        self.calls.disarm()
        if node.daemon.is_up:
            assert node.daemon.process is not None
            node.daemon.process.send_signal(signal.SIGABRT)
            await node.daemon.process.wait()
        return self._tail()

    def _tail(self) -> str:
        text = self.node.daemon.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-_TAIL:])

    async def _afresh(self) -> None:
        """Begin again after a broken law, with another process."""
        node = self.node
        await node.daemon.settle()
        for name in (VISITOR.name, PROBE.name):
            with suppress(Exception):
                await node.remove(name)
        await node.runtime.stop()
        await node.runtime.start()
        await node.daemon.launch()
        await node.daemon.in_step()
        await self.oracle.rest()
        node.daemon.new_lines()


def _has_no_memory(case: Case) -> bool:
    return any("/memory/" in one for one in case.faults)


def _has_no_thread_for_a_hang(case: Case) -> bool:
    """Return whether calls at the end may hang where no thread can be started."""
    hangs = any("/hang/" in one for one in case.faults)
    has_none = any(one.startswith("clone/") for one in case.faults)
    return case.phase == END and hangs and (has_none or _has_no_memory(case))


Choose: TypeAlias = Callable[[str, Counter[Point]], Iterable[Case]]


async def hold_all(  # noqa: PLR0913 - each has a default but the folder
    folder: Path,
    cases: Iterable[Case] = (),
    *,
    phases: Iterable[str] = (),
    choose: Choose = chosen,
    nodes: int = 3,
    report: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Hold the law in many cases, on several nodes at a time.

    Args:
        folder: For the nodes.
        cases: Those that are known.
        phases: Phases whose points are recorded.
        choose: Chooses cases by the recorded points.
        nodes: Their number; a node mostly waits.
        report: Called with each outcome.
    """
    rest, outcomes, is_ready = deque(cases), list[Outcome](), asyncio.Event()

    async def work(number: int) -> None:
        async with faulty_node(folder / f"node{number}") as node:
            law = Law(node)
            await law.begin()
            if not number:
                for phase in phases:
                    rest.extend(choose(phase, await law.record(phase)))
                is_ready.set()
            await is_ready.wait()
            while rest:
                outcome = await law.hold(rest.popleft())
                outcomes.append(outcome)
                report(outcome)

    async with asyncio.TaskGroup() as group:
        for number in range(nodes):
            group.create_task(work(number))
    return outcomes
