"""Random events on containers with cgroups, several at a time, and what must hold."""

from __future__ import annotations

import asyncio
import enum
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import attrs

from nri_proto import nri_pb2
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import Runtime, RuntimeOptions, RuntimeRefusal
from nri_resmgr.values import CpuSet, ResmgrError
from tests.app.node import SAFE
from tests.real_host.patience import patience
from tests.running.cgroup_world import CgroupWorld, StartSight
from tests.running.container_cgroups import ContainerCgroups
from tests.running.race_daemon import ProcessSize, RaceDaemon
from tests.running.race_laws import RaceLaws

_T = TypeVar("_T")

# Nothing is to wait for verification, whose second look comes after 2 s.
_VERIFY: Final = "60"  # seconds

_ROUND: Final = 250  # events between two pauses, at most
_AT_ONCE: Final = 4  # requests of the kubelet
_LIVING: Final = 20  # containers
_LAG: Final = 0.3  # seconds
_KILLS: Final = 40  # at most, until one lies between two writes
_PAIR: Final = 2  # writes, between which it can be killed
_SERIES: Final = 0.5  # seconds that a series of writes takes, at most
_OVERWRITES: Final = 4  # in a round, and at its end another one of each

_FEW: Final = 2  # threads that write, and their files
_GROWTH: Final = 1.25  # the history, which has a limit

_HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: "
_STATIC: Final = (
    f'{_HEAD}StaticPolicy\nspec: {{reservedResources: {{cpu: "cpuset:0"}}}}\n'
)
_TREE: Final = f"{_HEAD}TopologyAwarePolicy\nspec: {{reservedResources: {{cpu: 1}}}}\n"

# On smaller machines only the static policy has exclusive CPUs beside shared ones.
_MANY_CPUS: Final = 5

_PARENTS: Final = {
    "g": "/kubepods/pod{}",
    "b": "/kubepods/burstable/pod{}",
    "e": "/kubepods/besteffort/pod{}",
}


class Weather(enum.StrEnum):
    """What else happens in a round."""

    CALM = "calm"
    LAG = "the runtime updates cgroups late"
    KUBELET = "another program writes CPU sets"
    KILL = "the daemon is killed between its writes"


@attrs.define(eq=False)
class Tally:
    """Numbers of a run.

    Attributes:
        events: Requests, exits, freezes.
        starts: Exclusive containers that were alone on their CPUs at their start.
        refused: Creations that the daemon refused.
        kills: Kills of the daemon.
        cuts: Kills after which some containers had left the CPUs of a new exclusive
            one, and others had not: they lay between two writes.
        worst: Seconds until the laws held, at most, by weather.
        sizes: Of the last daemon at the pauses.
    """

    events: int = 0
    starts: int = 0
    refused: int = 0
    kills: int = 0
    cuts: int = 0
    worst: dict[Weather, float] = attrs.field(factory=dict)
    sizes: list[ProcessSize] = attrs.field(factory=list)

    def leaks(self) -> str:
        """Return what has grown between the first and the last size."""
        first, last = self.sizes[0], self.sizes[-1]
        has_leaks = (
            last.files > first.files + _FEW
            or last.threads > first.threads + _FEW
            or last.resident > _GROWTH * first.resident
        )
        return f"{first} to {last}" if has_leaks else ""


@attrs.frozen
class Leaving:
    """A series of writes, by which containers leave the CPUs of a new one.

    Attributes:
        containers: Numbers of changes of their records when it begins.
    """

    cpus: CpuSet
    containers: Mapping[str, int]


class Races:
    """A node with requests, exits and kills at the same time.

    Args:
        runtime: Started; its world has cgroups.
        most_exclusive: CPUs that a Guaranteed container requests at most.
    """

    def __init__(
        self,
        runtime: Runtime,
        cgroups: ContainerCgroups,
        daemon: RaceDaemon,
        choose: random.Random,
        most_exclusive: int,
    ) -> None:
        assert isinstance(runtime.world, CgroupWorld)
        self.tally = Tally()
        self._runtime = runtime
        self._world = runtime.world
        self._cgroups = cgroups
        self._daemon = daemon
        self._laws = RaceLaws(runtime.world, daemon)
        self._choose = choose
        self._most_exclusive = most_exclusive
        self._numbers = itertools.count()
        self._owned: set[str] = set()  # an actor will stop them
        self._frozen: set[str] = set()
        self._is_over = False
        self._fails_after_kill = ""
        self._length = _ROUND
        self._needs_cut = False

    async def run(self, events: int, *, needs_cut: bool) -> None:
        """Make so many events or some more, with pauses in which all laws must hold.

        Args:
            events: Their number.
            needs_cut: Whether to go on until a kill lay between two writes.

        Raises:
            AssertionError: One does not.
        """
        self._needs_cut = needs_cut
        # The daemon is killed among containers, and not in the last rounds.
        kinds = [Weather.KUBELET, Weather.KILL, Weather.LAG, Weather.CALM]
        self._length = min(_ROUND, events // len(Weather))
        # Among few events there may be no exclusive container to look at.
        while self.tally.events < events or not self.tally.starts or self._lacks_cut:
            if not kinds:
                kinds = [*Weather, Weather.KILL]
                self._choose.shuffle(kinds)
            # The last rounds have one daemon, whose size is compared.
            is_late = self.tally.events > 0.7 * events
            weather = kinds.pop()
            if weather is Weather.KILL and is_late and not self._lacks_cut:
                continue
            await self._round(weather)
            if weather is Weather.KILL and self._lacks_cut:
                assert self.tally.kills < _KILLS, self.tally
                kinds.append(weather)
        await self._laws.record_follows()

    @property
    def _lacks_cut(self) -> bool:
        """True if a kill between two writes is still to come."""
        return self._needs_cut and not self.tally.cuts

    async def _round(self, weather: Weather) -> None:
        end = self.tally.events + self._length
        self._is_over = False
        self._world.lag = _LAG if weather is Weather.LAG else 0.0
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._act(end))
            if weather is Weather.KUBELET:
                group.create_task(self._overwrite())
            if weather is Weather.KILL:
                group.create_task(self._kill())
        if weather is Weather.KUBELET:
            for name in self._world.living():
                self._world.overwrite(name, str(self._cgroups.machine.online))
        self._world.lag = 0.0
        while self._world.writes:  # noqa: ASYNC110 - a count of calls
            await asyncio.sleep(0.01)
        try:
            took = await self._laws.settle()
        except AssertionError as error:
            error.add_note(f"{weather}; {self.tally}; {self._daemon.log_end()}")
            raise
        self.tally.worst[weather] = max(took, self.tally.worst.get(weather, 0.0))
        self._world.foreign.clear()
        if weather is Weather.KILL:
            self.tally.sizes.clear()
        self.tally.sizes.append(self._daemon.size())

    # Events.

    async def _act(self, end: int) -> None:
        while self.tally.events < end and not self._is_over:
            here = len(self._world.containers)
            events: dict[Callable[[], Awaitable[None]], float] = {
                self._arrive: max(1.0, 2.0 * (_LIVING - here)),
                self._depart: max(0.0, here - _LIVING / 2),
                self._resize: 3.0,
                self._exit: 1.0,
                self._freeze: 2.0,
            }
            (event,) = self._choose.choices(list(events), list(events.values()))
            await event()
            await asyncio.sleep(0)

    async def _arrive(self) -> None:
        kind = self._choose.choice("ggbbbeee")
        name = f"{kind}{next(self._numbers)}"
        pod = await self._counted(self._runtime.run_pod(self._pod(kind, name)))
        try:
            await self._counted(self._create(pod, kind, name))
        except RuntimeRefusal:
            self.tally.refused += 1
            await self._leave(pod.id)
            return
        self._owned.add(name)
        fate = self._choose.random()
        if name == self._fails_after_kill:
            await self._daemon.killed()
            self._world.stopped(self._world.containers[name])
            await self._leave(pod.id)
        elif fate < 0.08:
            # A creation that fails after the reply.
            await self._counted(self._runtime.remove_container(name))
            await self._leave(pod.id)
        elif fate < 0.12:
            # And one whose stop is not reported.
            self._world.stopped(self._world.containers[name])
            await self._leave(pod.id)
        else:
            if fate > 0.5:
                await asyncio.sleep(0.05 * self._choose.random())
            session = self._daemon.session
            await self._counted(self._runtime.start_container(name))
            await self._check_start(name, session)
        self._owned.discard(name)

    async def _create(self, pod: Pod, kind: str, name: str) -> None:
        linux = LinuxContainer(
            resources=self._resources(kind), cgroups_path=self._cgroups.path(name)
        )
        container = Container(id=name, name=name, linux=linux)
        await self._runtime.create_container(pod.id, container)

    async def _depart(self) -> None:
        # Those that have CPUs of their own: few fit.
        first = self._choose.choice(("g", ""))
        if (name := self._any(first) or self._any()) is None:
            return
        self._owned.add(name)
        self._frozen.discard(name)
        pod = self._world.containers[name].pod_sandbox_id
        if self._choose.random() < 0.8:
            await self._counted(self._runtime.stop_container(name))
            await self._counted(self._runtime.remove_container(name))
        await self._leave(pod)
        self._owned.discard(name)

    async def _leave(self, pod: str) -> None:
        await self._counted(self._runtime.stop_pod(pod))
        await self._counted(self._runtime.remove_pod(pod))

    async def _resize(self) -> None:
        if name := self._any():
            # The container may be stopped meanwhile.
            with suppress(RuntimeRefusal, KeyError):
                resources = self._resources(name[0])
                await self._counted(self._runtime.update_container(name, resources))

    async def _exit(self) -> None:
        """End a process; the runtime reports it later, or with the pod."""
        if name := self._any():
            self.tally.events += 1
            self._cgroups.end(name)

    async def _freeze(self) -> None:
        if name := self._any():
            self.tally.events += 1
            self._cgroups.freeze(name, frozen=name not in self._frozen)
            self._frozen ^= {name}

    async def _overwrite(self) -> None:
        for _ in range(_OVERWRITES):
            await asyncio.sleep(0.6 * self._choose.random())
            if name := self._any():
                online = self._cgroups.machine.online
                self._world.overwrite(name, str(online))

    async def _kill(self) -> None:
        """Kill the daemon in the middle of the writes for an exclusive container."""
        created = asyncio.Event()
        # Often it is gone by the restart: what was written for it is not in the
        # runtime's record, and only a comparison finds it.
        fails = not self.tally.kills or self._choose.random() < 0.5
        least = 0.002 if fails else 0.0  # until some of it is written
        # A delay rarely hits a series, which is short.
        hits = not self.tally.cuts or self._choose.random() < 0.5
        series: list[Leaving] = []

        def kill_soon(name: str) -> None:
            if created.is_set() or not name.startswith("g"):
                return
            leaving = self._leaving(name)
            number = len(leaving.containers)
            if hits and number < _PAIR:
                return
            self._fails_after_kill = name if fails else ""
            series.append(leaving)
            if hits:
                self._daemon.kill_after(self._choose.randrange(1, number))
            else:
                delay = least + 0.004 * self._choose.random()
                loop = asyncio.get_running_loop()
                loop.call_later(delay, self._daemon.send_kill)
            created.set()

        await asyncio.sleep(0.2 * self._choose.random())
        self._world.on_created = kill_soon
        try:
            async with asyncio.timeout(1.0):  # a full node has none
                await created.wait()
        except TimeoutError:
            self._daemon.send_kill()
        self._world.on_created = lambda _: None
        with suppress(TimeoutError):  # a series may be shorter
            async with asyncio.timeout(patience(_SERIES)):
                await self._daemon.killed()
        # Later events would have all written again, whatever the restart does: often
        # there are none after the kill, or none after the restart.
        until = "kill" if fails else self._choose.choice(("kill", "restart", "end"))
        self._is_over = until == "kill"
        await self._daemon.kill()
        self.tally.kills += 1
        self.tally.cuts += any(self._is_cut(one) for one in series)
        await asyncio.sleep(0.3 * self._choose.random())
        self._is_over = until != "end"
        await self._daemon.start()

    def _leaving(self, name: str) -> Leaving:
        """Return the containers that have to leave the CPUs of a created one."""
        own = CpuSet.parse(self._world.recorded(name))
        found = {
            key: self._world.changes.get(key, 0)
            for key, cpus in self._world.living().items()
            if cpus & own
        }
        return Leaving(own, found)

    def _is_cut(self, series: Leaving) -> bool:
        """Return whether some have left by a write of the daemon, and some have not."""
        living = self._world.living()
        left = {
            not living[key] & series.cpus
            for key, changes in series.containers.items()
            # Of others a request has changed the CPUs meanwhile.
            if key in living and self._world.changes.get(key, 0) == changes
        }
        return len(left) > 1

    def _any(self, kind: str = "") -> str | None:
        names = [
            key
            for key, one in self._world.containers.items()
            if one.state == nri_pb2.CONTAINER_RUNNING
            and key not in self._owned
            and key.startswith(kind)
        ]
        return self._choose.choice(names) if names else None

    async def _counted(self, request: Awaitable[_T]) -> _T:
        self.tally.events += 1
        return await request

    def _pod(self, kind: str, name: str) -> Pod:
        parent = LinuxPod(cgroup_parent=_PARENTS[kind].format(name))
        namespace = "kube-system" if self._choose.random() < 0.1 else "shop"
        return Pod(id=f"pod-{name}", name=name, namespace=namespace, linux=parent)

    def _resources(self, kind: str) -> LinuxResources:
        match kind:
            case "g":
                count = self._choose.randint(1, self._most_exclusive)
                cpu = LinuxCpu(1024 * count, 100_000 * count, 100_000)
                return LinuxResources(cpu=cpu, memory=LinuxMemory(limit=64 << 20))
            case "b":
                return LinuxResources(cpu=LinuxCpu(self._choose.randint(10, 100)))
            case _:
                return LinuxResources(cpu=LinuxCpu(2))

    # Laws.

    async def _check_start(self, name: str, session: int) -> None:
        """No other container had its exclusive CPUs when it was started."""
        sight = self._world.starts.get(name)
        if not session or session != self._daemon.session:
            return
        try:
            row = (await self._daemon.rows()).get(name)
        except ResmgrError:
            if session == self._daemon.session:
                raise
            return  # it was killed meanwhile
        # Resized or stopped meanwhile, it may have others than at its start.
        is_same = sight and self._world.changes.get(name, 0) == sight.changes
        if row and sight and is_same and (own := CpuSet.parse(row["exclusive"])):
            _check_alone(sight, own)
            self.tally.starts += 1


def _check_alone(sight: StartSight, own: CpuSet) -> None:
    shared = {
        key: str(cpus & own)
        for key, cpus in sight.cpus.items()
        if cpus & own and key != sight.container and key not in sight.foreign
    }
    assert not shared, (sight.container, str(own), shared)


async def run_races(
    folder: Path,
    cgroups: ContainerCgroups,
    seed: int,
    events: int,
    *,
    needs_cut: bool = False,
) -> Tally:
    """Start a runtime and the daemon, and make so many events; see `Races.run`.

    Raises:
        AssertionError: A law does not hold.
    """
    choose = random.Random(seed)  # noqa: S311 - a repeatable draw
    options = RuntimeOptions(records=False, request_timeout=patience(2.0))
    runtime = Runtime(folder, SAFE, options=options)
    runtime.world = CgroupWorld(cgroups, choose)
    is_small = len(cgroups.machine.online) < _MANY_CPUS
    document, most_exclusive = (_STATIC, 1) if is_small else (_TREE, 3)
    daemon = RaceDaemon(
        runtime, folder, cgroups.root, document, "--verify-interval", _VERIFY
    )
    node = Races(runtime, cgroups, daemon, choose, most_exclusive)
    async with runtime:
        try:
            await daemon.start()
            await node.run(events, needs_cut=needs_cut)
        finally:
            await daemon.kill()
            cgroups.close()
    return node.tally
