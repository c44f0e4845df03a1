"""What the daemon is there for, as a run without faults does it."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Final

from nri_resmgr.values import CpuSet, QosClass
from tests.faults.faulty_node import FaultyNode
from tests.faults.host_effects import (
    groups_at,
    published_in,
    settings_at,
    settings_for,
)
from tests.faults.node_cgroups import Pins
from tests.faults.node_daemon import BUSY, json_of
from tests.faults.node_pods import BESIDE_PROBE, LIMIT, PROBE, RESIDENTS, VISITOR
from tests.faults.phases import ACT
from tests.faults.system_calls import Point

_EXCLUSIVE: Final = [
    one for one in (*RESIDENTS, PROBE) if one.qos is QosClass.GUARANTEED
]

LOOK: Final = 0.05  # seconds between two looks

_CPU_TIMES: Final = Point("openat", "cpu-time")
_LOOKS: Final = 10  # at something that comes and goes
# Of the part that has read documents of the cluster: its thread is away meanwhile, and
# would be one more afterwards.
_PAUSE: Final = 1.3  # seconds

_VERIFIED: Final = re.compile(
    r"^nri_resmgr_verification_timestamp_seconds (\S+)", re.MULTILINE
)


class Broken(Exception):
    """The law does not hold."""


class Oracle:
    """Compares the daemon of a node with one that had no faults.

    Args:
        node: With its runtime.
    """

    def __init__(self, node: FaultyNode) -> None:
        self.node = node
        self._calm: Pins = {}
        self._probed: Pins = {}
        self._visited: Pins = {}
        self._groups: Mapping[str, str] = {}
        self._descriptors: list[str] = []
        self._threads = 0
        self._watches = 0

    async def record(self) -> None:
        """Create and remove containers without faults, and note their pins."""
        node = self.node
        # On a busy machine the runtime may drop the daemon, and go on without pins.
        async with asyncio.timeout(BUSY):
            while not await self._recorded():
                for one in (*RESIDENTS, PROBE, VISITOR):
                    await node.remove(one.name)
                await node.daemon.in_step()

    async def _recorded(self) -> bool:
        node = self.node
        for one in RESIDENTS:
            await node.place(one)
        self._calm = node.cgroups.pins()
        await node.place(PROBE)
        self._probed = await self._pins_beside(PROBE.name)
        await node.remove(PROBE.name)
        await node.place(VISITOR)
        self._visited = await self._pins_beside(VISITOR.name)
        await node.remove(VISITOR.name)
        self._groups = groups_at(node.folder / "host")
        pins = (*self._calm.values(), *self._probed.values(), *self._visited.values())
        until = time.monotonic() + ACT  # the others grow right after the reply
        while node.cgroups.pins() != self._calm and time.monotonic() < until:  # noqa: ASYNC110 - a changed file sets no event
            await asyncio.sleep(LOOK)
        return (
            node.cgroups.pins() == self._calm
            and all(cpus for cpus, _ in pins)
            and _is_alone(PROBE.name, self._probed)
            and _is_alone(VISITOR.name, self._visited)
            and self._probed[BESIDE_PROBE.name] != self._calm[BESIDE_PROBE.name]
        )

    async def _pins_beside(self, name: str) -> Pins:
        """Return the pins when the others have left the CPUs of an exclusive one.

        On a busy machine a start does not wait until all are written.
        """
        cgroups, until = self.node.cgroups, time.monotonic() + ACT
        while not _is_alone(name, cgroups.pins()) and time.monotonic() < until:  # noqa: ASYNC110 - as above
            await asyncio.sleep(LOOK)
        return cgroups.pins()

    async def rest(self) -> None:
        """Wait until all parts run, and count descriptors and threads."""
        node = self.node
        until = time.monotonic() + BUSY
        while time.monotonic() < until:
            with suppress(Exception):
                services = (await node.daemon.ask())["kubeletServices"]
                has_kubelet = not any(one["problem"] for one in services)
                metrics = (await node.daemon.get("/metrics"))[1]
                if has_kubelet and "verification_timestamp" in metrics:
                    break
            await asyncio.sleep(LOOK)
        await asyncio.sleep(_PAUSE)
        found = []
        for _ in range(_LOOKS):
            await asyncio.sleep(LOOK)
            found.append(node.daemon.resources())
        # Threads of single calls come and go.
        self._descriptors = min((links for links, _ in found), key=len)
        self._threads = min(len(threads) for _, threads in found)
        self._watches = node.daemon.watches()

    def forget_resources(self) -> None:
        """Compare descriptors and threads no more: they were of another process."""
        self._threads = 0

    async def works(self, until: float) -> None:
        """Check everything that the daemon is there for."""
        node = self.node
        since = time.time()
        node.systemd.calls.clear()
        assert node.daemon.calls is not None
        times = node.daemon.calls.counts[_CPU_TIMES]
        check = partial(self._check, until)
        await check("session", self._look_at_session)
        # Those that came during the fault.
        await check("documents of the cluster", self._look_at_adjustments)
        node.documents.write_configuration()
        node.documents.write_adjustments()
        await check("visitor", self._look_at_visitor)
        await check("grants", self._look_at_grants)
        await check("placement", self._look_at_placement)
        await check("kubelet", self._look_at_kubelet)
        await check("checkpoint", self._look_at_checkpoint(present=True))
        await check("host", self._look_at_host)
        await node.remove(PROBE.name)
        await check("release", self._look_at_grants)
        await check("checkpoint again", self._look_at_checkpoint(present=False))
        await check("host again", self._look_at_host)
        await check("configuration", self._look_at_configuration)
        await check("block I/O", self._look_at_weights)
        await check("RDT", self._look_at_groups)
        await check("reload", self._look_at_reload())
        await check("adjustments", self._look_at_adjustments)
        await check("units", self._look_at_units)
        # Before the next scrape, which reads them as well.
        await check("rebalance", self._look_at_rebalance(times))
        await check("recording", self._look_at_recording)
        await check("metrics", self._look_at_metrics(since))
        await check("health", self._look_at_health)
        await check("systemd", self._look_at_manager(time.monotonic()))
        await check("watches", self._look_at_watches)
        if self._threads:
            await check("resources", self._look_at_resources)

    async def _check(
        self, until: float, what: str, look: Callable[[], Awaitable[str]]
    ) -> None:
        """Look until nothing is wrong.

        Raises:
            Broken: Something still is.
        """
        why = "nothing"
        while True:
            if not self.node.daemon.is_up:
                raise Broken(f"{what}: the daemon has ended")
            try:
                async with asyncio.timeout(ACT):
                    why = await look()
            except Exception as error:  # noqa: BLE001 - to be tried again
                why = repr(error)
            if not why:
                return
            if time.monotonic() > until:
                raise Broken(f"{what}: {why}")
            await asyncio.sleep(LOOK)

    async def _look_at_session(self) -> str:
        await self.node.daemon.in_step(within=ACT)
        return ""

    async def _look_at_visitor(self) -> str:
        """Compare the pin of a container that came during the fault."""
        node = self.node
        if VISITOR.name in node.runtime.world.containers:
            found, wanted = node.cgroups.pins(), self._visited
            if found != wanted:
                return f"{found}, not {wanted}"
            if why := self._unlimited():
                return why
        await node.remove(VISITOR.name)
        return ""

    async def _look_at_grants(self) -> str:
        found = self.node.cgroups.pins()
        if found != self._calm:
            return f"cgroups have {found}, not {self._calm}"
        state = await self.node.daemon.ask()
        listed = {one["id"]: one["cpus"] for one in state["containers"]}
        wanted = {name: cpus for name, (cpus, _) in self._calm.items()}
        if listed != wanted:
            return f"the daemon has {listed}, not {wanted}"
        return self._unlimited()

    def _unlimited(self) -> str:
        limits = self.node.cgroups.limits()
        without = [name for name, limit in limits.items() if limit != LIMIT]
        return f"without their limit of fast memory: {without}" if without else ""

    async def _look_at_placement(self) -> str:
        node = self.node
        await node.remove(PROBE.name)
        await node.place(PROBE)
        found = node.cgroups.pins()
        return "" if found == self._probed else f"{found}, not {self._probed}"

    async def _look_at_host(self) -> str:
        """Look for settings of CPUs and published files."""
        node = self.node
        pins, published = node.cgroups.pins(), published_in(node.folder / "run")
        if published != pins:
            return f"published is {published}, not {pins}"
        own = [pins[one.name][0] for one in _EXCLUSIVE if one.name in pins]
        wanted = settings_for(CpuSet.parse(",".join(own))).items()
        found = settings_at(node.folder / "host").items()
        return f"{dict(found - wanted)}, not {dict(wanted - found)}" * (found != wanted)

    async def _look_at_weights(self) -> str:
        found, wanted = self.node.cgroups.weights(), self.node.documents.wanted_weight
        others = {name: one for name, one in found.items() if one != wanted}
        return f"{others}, not {wanted}" if others else ""

    async def _look_at_groups(self) -> str:
        found = groups_at(self.node.folder / "host")
        return "" if found == self._groups else f"{found}, not {self._groups}"

    async def _look_at_units(self) -> str:
        """Look for the CPUs of the resident that the probe has taken some from."""
        name = BESIDE_PROBE.name
        found, (wanted, _) = self.node.unit_cpus(name), self._calm[name]
        if found == wanted:
            return ""
        # The runtime sets the unit: for a minute after a write that failed, and of all
        # containers where the cgroups could not be looked at when the daemon started.
        state = (await self.node.daemon.ask())["applyUpdates"]
        if state["byRuntime"] or (state["by"] == "runtime" and state["why"]):
            return ""
        # While `running` fails, the runtime has the last change: make another one.
        await self.node.place(PROBE)
        await asyncio.sleep(LOOK)
        await self.node.remove(PROBE.name)
        await asyncio.sleep(1.0)  # values are collected for half a second
        return f"the unit of {name} has {found!r}, not {wanted}"

    async def _look_at_kubelet(self) -> str:
        """Look for requests and devices of all containers, the new one included."""
        state = await self.node.daemon.ask()
        for one in state["kubeletServices"]:
            if one["problem"]:
                return str(one["problem"])
        sources = {one["id"]: one["ownSource"] for one in state["containers"]}
        others = {key: one for key, one in sources.items() if one != "kubelet"}
        if others:
            return f"requests are of {others}"
        details = state["kubeletServices"][-1]["details"]
        number = len(self.node.runtime.world.pods)
        wanted = f"{number} of {number} pods, {number} devices"
        return "" if details == wanted else f"{details}, not {wanted}"

    def _look_at_manager(self, since: float) -> Callable[[], Awaitable[str]]:
        async def look() -> str:
            return self.node.manager.problem(since)

        return look

    async def _look_at_watches(self) -> str:
        found = self.node.daemon.watches()
        if found >= self._watches:
            return ""
        return f"{found} watches of inotify, {self._watches} before"

    def _look_at_rebalance(self, times: int) -> Callable[[], Awaitable[str]]:
        node = self.node
        assert node.daemon.calls is not None
        counts = node.daemon.calls.counts

        async def look() -> str:
            return "" if counts[_CPU_TIMES] > times else "no CPU time is read"

        return look

    def _look_at_checkpoint(self, *, present: bool) -> Callable[[], Awaitable[str]]:
        async def look() -> str:
            text = self.node.daemon.checkpoint()
            if f'"{PROBE.name}"' in text and not present:
                return "it still has the container"
            if f'"{PROBE.name}"' not in text and present:
                return "it does not have the container"
            missing = [one.name for one in RESIDENTS if f'"{one.name}"' not in text]
            return f"it does not have {missing}" if missing else ""

        return look

    async def _look_at_configuration(self) -> str:
        state = await self.node.daemon.ask()
        found = state["configuration"]["sha256"]
        wanted = sha256(self.node.documents.configuration.encode()).hexdigest()
        return "" if found == wanted else "an older document is in force"

    async def _look_at_adjustments(self) -> str:
        state = await self.node.daemon.ask()
        found = state["cluster"]["adjustments"]
        wanted = sha256(self.node.documents.adjustments.encode()).hexdigest()
        if not found or found["digest"] != wanted:
            return "older adjustments are in force"
        if found["verdict"] != "accepted" or found["problem"]:
            return f"adjustments are {found['verdict']}: {found['problem']}"
        quota = self.node.cgroups.quota()
        if quota == self.node.documents.wanted_quota:
            return ""
        # While `running` fails, the change waits for a reply to the runtime.
        await self.node.place(PROBE)
        await self.node.remove(PROBE.name)
        return f"cpu.max is {quota!r}"

    def _look_at_reload(self) -> Callable[[], Awaitable[str]]:
        # The poll only looks at the file's times.
        node, point = self.node, Point("openat", "configuration")
        assert node.daemon.calls is not None
        counts = node.daemon.calls.counts
        before = counts[point]

        async def look() -> str:
            assert node.daemon.process is not None
            if counts[point] > before:
                return ""
            node.daemon.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(LOOK)
            return "SIGHUP has no effect"

        return look

    def _look_at_metrics(self, since: float) -> Callable[[], Awaitable[str]]:
        async def look() -> str:
            status, text = await self.node.daemon.get("/metrics")
            if status != 200:
                return f"status {status}"
            found = _VERIFIED.search(text)
            if found is None or float(found[1]) < since:
                return f"no round of verification since: {found and found[1]}"
            return ""

        return look

    async def _look_at_recording(self) -> str:
        """Look for lines that are cut off, and for messages without a line."""
        text = (self.node.folder / "recording").read_text()
        rows = [json_of(line) or {} for line in text.splitlines()]
        if {} in rows:
            return "a line is cut off"
        calls = [row["number"] for row in rows if row.keys() & {"call", "we_call"}]
        missing = set(range(1, len(calls) + 1)) - set(calls)
        return f"it does not have the calls {missing}" if missing else ""

    async def _look_at_health(self) -> str:
        for path in ("/healthz", "/readyz"):
            for get in (self.node.daemon.get, self.node.daemon.probe):
                status, text = await get(path)
                if status != 200:
                    return f"{path}: {status} {text}"
        return ""

    async def _look_at_resources(self) -> str:
        links, threads = self.node.daemon.resources()
        if len(links) > len(self._descriptors):
            names = Counter(_kind(one) for one in links)
            more = names - Counter(_kind(one) for one in self._descriptors)
            return f"more descriptors: {dict(more)}"
        if len(threads) > self._threads:
            return f"{len(threads)} threads, {self._threads} before"
        return ""


def _is_alone(name: str, pins: Pins) -> bool:
    if name not in pins:
        return False
    own = CpuSet.parse(pins[name][0])
    others = (cpus for other, (cpus, _) in pins.items() if other != name)
    return all(own.isdisjoint(CpuSet.parse(cpus)) for cpus in others)


def _kind(link: str) -> str:
    return re.sub(r"\d+", "", link)
