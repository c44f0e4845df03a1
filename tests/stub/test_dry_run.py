"""A dry run: containers are as they would be without the plugin, and the log knows."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs
from structlog.typing import EventDict

from nri_proto import NriLevel
from nri_resmgr.stub import (
    Configuration,
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    CreateReply,
    LinuxContainer,
    LinuxCpu,
    LinuxResources,
    Mount,
    Pod,
    RequestRejected,
    StubOptions,
    UnsolicitedUpdates,
    Validation,
)
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.stub.live import NAME, live, plugged

DRY = StubOptions(dry_run=True)
ASKING = LinuxContainer(resources=LinuxResources(cpu=LinuxCpu(shares=512)))


class Meddler:
    """Changes whatever it gets to see."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.is_dry_run: bool | None = None

    def configure(self, configuration: Configuration) -> None:
        self.is_dry_run = configuration.is_dry_run

    def synchronize(
        self, _: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> list[ContainerUpdate]:
        self.seen += ["synchronize"]
        return [ContainerUpdate(one.id).set_cpu_shares(2) for one in containers]

    def create_container(self, _: Pod, container: Container) -> CreateReply:
        self.seen += ["create"]
        others = tuple(
            ContainerUpdate(one).set_cpu_shares(3) for one in ("ctr0",) if container.id
        )
        return CreateReply(ContainerAdjustment().set_env("A", "b"), others)

    def update_container(
        self, _: Pod, container: Container, __: LinuxResources
    ) -> ContainerUpdate:
        self.seen += ["update"]
        return ContainerUpdate(container.id).set_cpu_shares(4)

    def stop_container(self, _: Pod, __: Container) -> list[ContainerUpdate]:
        self.seen += ["stop"]
        return [ContainerUpdate("ctr0").set_cpu_shares(5)]


class Refuser:
    """Refuses each request in another way."""

    def create_container(self, _: Pod, container: Container) -> ContainerAdjustment:
        if container.name == "refused":
            raise RequestRejected("not here")
        if container.name == "broken":
            raise ZeroDivisionError("a bug")
        adjustment = ContainerAdjustment().set_env("A", "b")
        if container.name == "twice":
            return ContainerAdjustment(mounts=(Mount("/a"), Mount("/a")))
        return adjustment

    def run_pod_sandbox(self, _: Pod) -> None:
        raise RequestRejected("no pods")

    def validate_container_adjustment(self, _: Validation) -> None:
        raise RequestRejected("not valid")


def withheld(lines: list[EventDict]) -> list[tuple[str, str, object]]:
    return [
        (line["method"], line["about"], line.get("reply", line.get("refusal")))
        for line in lines
        if line["event"] == "reply.withheld"
    ]


def shares_update(container: str, shares: int) -> dict[str, object]:
    value = {"resources": {"cpu": {"shares": {"value": str(shares)}}}}
    return {"container_id": container, "linux": value}


async def test_replies_are_logged_instead_of_sent(tmp_path: Path) -> None:
    meddler = Meddler()
    with capture_logs() as lines:
        async with Runtime(tmp_path) as runtime:
            pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
            first = await runtime.create_container(
                pod.id, Container(name="first", linux=ASKING)
            )
            async with live(runtime, meddler, DRY):
                second = await runtime.create_container(
                    pod.id, Container(name="second", linux=ASKING)
                )
                wanted = LinuxResources(cpu=LinuxCpu(shares=700))
                await runtime.update_container(second.container.id, wanted)
                shares = [one.cpu.shares for one in runtime.containers]
                await runtime.stop_container(second.container.id)
            left = runtime.container(first.container.id)

    assert meddler.is_dry_run is True
    assert meddler.seen == ["synchronize", "create", "update", "stop"]
    assert second.container.env == ()
    assert (shares, left.cpu.shares) == ([512, 700], 512)
    assert withheld(lines) == [
        ("Synchronize", "", {"update": [shares_update("ctr0", 2)]}),
        (
            "CreateContainer",
            "shop/web/second",
            {
                "adjust": {"env": [{"key": "A", "value": "b"}]},
                "update": [shares_update("ctr0", 3)],
            },
        ),
        ("UpdateContainer", "shop/web/second", {"update": [shares_update("ctr1", 4)]}),
        ("StopContainer", "shop/web/second", {"update": [shares_update("ctr0", 5)]}),
    ]


async def test_without_a_dry_run_all_of_it_is_sent(tmp_path: Path) -> None:
    meddler = Meddler()
    async with Runtime(tmp_path) as runtime:
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container(linux=ASKING))
        async with live(runtime, meddler):
            created = await runtime.create_container(pod.id, Container())

            assert meddler.is_dry_run is False
            assert created.container.env == ("A=b",)
            assert runtime.container("ctr0").cpu.shares == 3


async def test_refusals_and_errors_are_logged_and_fail_nothing(tmp_path: Path) -> None:
    with capture_logs() as lines:
        async with plugged(tmp_path, Refuser(), options=DRY) as (runtime, _):
            pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
            for name in ("refused", "broken", "twice", "fine"):
                created = await runtime.create_container(pod.id, Container(name=name))
                assert created.container.env == ()

            assert runtime.plugins == (NAME,)

    found = [(method, title, str(what)) for method, title, what in withheld(lines)]
    creations = [one for one in found if one[0] == "CreateContainer"]
    assert ("RunPodSandbox", "shop/web", "no pods") in found
    assert creations[:2] == [
        ("CreateContainer", "shop/web/refused", "not here"),
        ("CreateContainer", "shop/web/broken", "ZeroDivisionError: a bug"),
    ]
    assert creations[2][1:] == (
        "shop/web/twice",
        "DuplicateKey: mounts '/a' is set twice in one reply",
    )
    assert creations[3][1] == "shop/web/fine"
    validations = [one for one in found if one[0] == "ValidateContainerAdjustment"]
    assert [one[2] for one in validations] == ["not valid"] * 4


async def test_old_runtimes_get_no_refusal_either(tmp_path: Path) -> None:
    level = NriLevel(0, 8)
    async with plugged(tmp_path, Refuser(), level, options=DRY) as (runtime, _):
        pod = await runtime.run_pod(Pod())

        assert pod.id in [one.id for one in runtime.pods]


class Onlooker:
    """Changes nothing."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def synchronize(
        self, _: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> None:
        self.seen += [one.id for one in containers]

    def create_container(self, _: Pod, __: Container) -> ContainerAdjustment:
        return ContainerAdjustment()

    def stop_container(self, _: Pod, __: Container) -> None:
        """Return no updates."""


async def test_a_synchronize_of_several_messages_is_complete(tmp_path: Path) -> None:
    onlooker = Onlooker()
    options = RuntimeOptions(sync_objects=2)
    with capture_logs() as lines:
        async with Runtime(tmp_path, options=options) as runtime:
            pod = await runtime.run_pod(Pod())
            ids = [
                (await runtime.create_container(pod.id, Container())).container.id
                for _ in range(5)
            ]
            async with live(runtime, onlooker, DRY):
                assert onlooker.seen == ids

    assert withheld(lines) == []


async def test_replies_that_change_nothing_are_not_logged(tmp_path: Path) -> None:
    with capture_logs() as lines:
        async with plugged(tmp_path, Onlooker(), options=DRY) as (runtime, _):
            pod = await runtime.run_pod(Pod())
            created = await runtime.create_container(pod.id, Container())
            await runtime.stop_container(created.container.id)

    assert withheld(lines) == []


async def test_unsolicited_updates_are_logged_instead_of_sent(tmp_path: Path) -> None:
    always = StubOptions(dry_run=True, unsolicited_updates=UnsolicitedUpdates.ALWAYS)
    with capture_logs() as lines:
        async with plugged(tmp_path, Meddler(), options=always) as (runtime, stub):
            pod = await runtime.run_pod(Pod())
            created = await runtime.create_container(pod.id, Container(linux=ASKING))
            key = created.container.id
            update = ContainerUpdate(key).set_cpu_shares(9)
            failed = await stub.update_containers([update])
            shares = runtime.container(key).cpu.shares
            calls = {one.method for one in runtime.records}

    assert (failed, shares) == ((), 512)
    assert "CreateContainer" in calls
    assert "UpdateContainers" not in calls
    updates = [line["updates"] for line in lines if line["event"] == "updates.withheld"]
    assert updates == [[shares_update(key, 9)]]
