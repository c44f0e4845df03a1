"""RDT classes of containers: at creation, while they run, and when the daemon ends."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from nri_proto import Level
from nri_resmgr.stub.model import Rdt
from nri_resmgr.testing import Created
from nri_resmgr.testing.errors import PluginRefused
from nri_resmgr.testing.resctrl import Faults, Resctrl
from tests.app.class_rig import HARDWARE, running_rig
from tests.app.node import SAFE, until
from tests.host.resctrl.kept import Kept

KEY = "rdtclass.resource-policy.nri.io"
GOLD: Mapping[str, str] = {KEY: "gold"}


def document(classes: str = "gold: {}, silver: {l3Allocation: 50%}", *more: str) -> str:
    partitions = f"partitions: {{p: {{l3Allocation: 100%, classes: {{{classes}}}}}}}"
    said = ", ".join(("enable: true", partitions, *more))
    return f"{{control: {{rdt: {{{said}}}}}}}"


def told(created: Created) -> tuple[str | None, str | None]:
    """Return the names that the runtime was told: of the group, and of the class."""
    adjustment = created.adjustment
    rdt = (adjustment.linux and adjustment.linux.rdt) or Rdt()
    return rdt.clos_id, adjustment.resources.rdt_class


async def test_groups_are_made_and_a_container_is_created_in_one(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await rig.settled()
        created = await rig.create("c0", GOLD)

        assert told(created) == ("gold", None)
        assert {name: rig.schemata(name) for name in rig.groups()} == {
            "gold": ["L3:0=fffff;1=fffff", "MB:0=100;1=100"],
            "silver": ["L3:0=003ff;1=003ff", "MB:0=100;1=100"],
        }
    assert rig.groups() == []


@pytest.mark.parametrize(
    ("level", "names"),
    [
        pytest.param(SAFE, ("gold", None), id="by the group where the level has it"),
        pytest.param(Level(0, 10), (None, "gold"), id="by the class before that"),
    ],
)
async def test_how_the_runtime_is_told(
    tmp_path: Path, level: Level, names: tuple[str | None, str | None]
) -> None:
    async with running_rig(tmp_path, document(), level=level) as rig:
        await rig.settled()

        assert told(await rig.create("c0", GOLD)) == names


@pytest.mark.parametrize(
    ("spec", "annotations", "names"),
    [
        pytest.param(document(), {}, None, id="none where nobody says anything"),
        pytest.param(
            document("Guaranteed: {}", "usePodQoSAsDefaultClass: true"),
            {},
            "Guaranteed",
            id="the QoS class's where that counts",
        ),
        pytest.param(
            document("Guaranteed: {}, gold: {}", "usePodQoSAsDefaultClass: true"),
            GOLD,
            "gold",
            id="an annotation goes first",
        ),
        pytest.param(
            document("Burstable: {}", "usePodQoSAsDefaultClass: true"),
            {},
            None,
            id="a QoS class without a class is dropped",
        ),
        pytest.param(
            document(),
            {f"{KEY}/pod": "gold", f"{KEY}/container.c0": "silver"},
            "silver",
            id="a container's annotation goes before its pod's",
        ),
        pytest.param(
            document(),
            {"rdt.resources.beta.kubernetes.io/pod": "silver"},
            "silver",
            id="the runtimes' own annotation",
        ),
        pytest.param(
            document(),
            {KEY: "system/default"},
            None,
            id="the root group is where all begin",
        ),
        pytest.param(
            "{control: {rdt: {enable: false}}}",
            {KEY: "gold"},
            None,
            id="annotations mean nothing where it is off",
        ),
    ],
)
async def test_who_has_which_class(
    tmp_path: Path, spec: str, annotations: Mapping[str, str], names: str | None
) -> None:
    async with running_rig(tmp_path, spec) as rig:
        if "true" in spec:
            await rig.settled()

        assert told(await rig.create("c0", annotations))[0] == names


@pytest.mark.parametrize(
    ("spec", "annotations", "why"),
    [
        pytest.param(
            document(),
            {KEY: "goold"},
            f"default/c0/c0 asks for RDT class 'goold' by {KEY}; known: gold, silver; "
            "name one of these, or add the class to the configuration",
            id="no such class",
        ),
        pytest.param(
            document("gold: {kubernetes: {denyPodAnnotation: true}}"),
            {f"{KEY}/pod": "gold"},
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}/pod, which "
            "kubernetes.denyPodAnnotation of the class forbids; name another class",
            id="denied to pods",
        ),
        pytest.param(
            document("gold: {kubernetes: {denyContainerAnnotation: true}}"),
            {f"{KEY}/container.c0": "gold"},
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}/container.c0, which "
            "kubernetes.denyContainerAnnotation of the class forbids; name another "
            "class",
            id="denied to containers",
        ),
        pytest.param(
            "{control: {rdt: {enable: true}}}",
            GOLD,
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}; known: "
            "system/default, other; name one of these, or add the class to the "
            "configuration",
            id="no such group of the host",
        ),
    ],
)
async def test_what_is_refused(
    tmp_path: Path, spec: str, annotations: Mapping[str, str], why: str
) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("other")
    async with running_rig(tmp_path, spec, resctrl) as rig:
        await rig.settled()
        with pytest.raises(PluginRefused) as found:
            await rig.create("c0", annotations)

        assert why in str(found.value)
        assert not rig.node.plugin.state.ledger.entries


async def test_a_denied_pod_may_name_the_class_for_a_container(tmp_path: Path) -> None:
    spec = document("gold: {kubernetes: {denyPodAnnotation: true}}")
    async with running_rig(tmp_path, spec) as rig:
        await rig.settled()
        created = await rig.create("c0", {f"{KEY}/container.c0": "gold"})

        assert told(created) == ("gold", None)


async def test_groups_of_the_host_are_classes_where_none_is_configured(
    tmp_path: Path,
) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("gold")
    async with running_rig(
        tmp_path, "{control: {rdt: {enable: true}}}", resctrl
    ) as rig:
        await rig.settled()

        assert told(await rig.create("c0", GOLD)) == ("gold", None)
    assert rig.groups() == ["gold"]


async def test_running_containers_follow_another_configuration(tmp_path: Path) -> None:
    by_qos = "usePodQoSAsDefaultClass: true"
    async with running_rig(tmp_path, document("Guaranteed: {}", by_qos)) as rig:
        await rig.settled()
        await rig.create("c0")
        await rig.create("c1", {KEY: "Guaranteed"})
        rig.appear("c0", 100, 101, group="Guaranteed")
        rig.appear("c1", 200)
        rig.resctrl.start(300)
        for name in ("c0", "c1"):
            await rig.node.runtime.start_container(name)
        await until(lambda: rig.tasks("Guaranteed") == "100 101 200")

        rig.reconfigure(document("Guaranteed: {}, gold: {}"))
        await until(lambda: rig.tasks("Guaranteed") == "200")
        assert rig.tasks() == "100 101 300"

        rig.reconfigure(document("Guaranteed: {}, gold: {}", by_qos))
        await until(lambda: rig.tasks("Guaranteed") == "100 101 200")

        # The class goes, with those who asked for nothing else in it.
        rig.reconfigure(document("gold: {}"))
        await until(lambda: rig.groups() == ["gold"])
        assert rig.tasks() == "100 101 200 300"

        rig.reconfigure("{}")
        await until(lambda: rig.groups() == [])


async def test_threads_that_come_later_are_moved(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await rig.settled()
        await rig.create("c0", GOLD)
        rig.appear("c0", 100)
        await rig.node.runtime.start_container("c0")
        await until(lambda: rig.tasks("gold") == "100")
        rig.appear("c0", 100, 101)

        await until(lambda: rig.tasks("gold") == "100 101")


async def test_a_group_that_others_changed_is_set_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await rig.settled()
        rig.resctrl.write("gold/schemata", "L3:0=1\n")

        await until(lambda: "L3:0=fffff;1=fffff" in rig.schemata("gold"))


async def test_pods_have_monitoring_groups_until_they_are_gone(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document("gold: {}", "monitorPods: true")) as rig:
        await rig.settled()
        await rig.create("c0", GOLD)
        rig.appear("c0", 100)
        await rig.node.runtime.start_container("c0")
        group = "gold/mon_groups/uid-c0"
        await until(lambda: rig.tasks(group) == "100")
        # It outlives the container, whose next one goes on with the same counters.
        await rig.node.runtime.stop_container("c0")
        await rig.node.runtime.remove_container("c0")
        assert rig.resctrl.names("gold/mon_groups") == ("uid-c0",)
        await rig.node.runtime.stop_pod("pod-c0")

        await until(lambda: rig.resctrl.names("gold/mon_groups") == ())


async def test_what_the_kernel_refuses_is_told_and_tried_again(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    for number in range(HARDWARE.closids - 1):
        resctrl.mkdir(f"other{number}")
    async with running_rig(tmp_path, document(), resctrl) as rig:
        await rig.settled()
        host = rig.node.plugin.class_hosts.rdt
        with pytest.raises(PluginRefused) as found:
            await rig.create("c0", GOLD)
        assert "which this node does not have: 2 RDT classes" in str(found.value)
        assert list(host.troubles.present) == ["groups"]
        for number in range(2):
            resctrl.rmdir(f"other{number}")
        await until(lambda: not host.troubles.present)

        assert told(await rig.create("c0", GOLD)) == ("gold", None)


async def test_after_a_kill_nobody_claims_the_groups(tmp_path: Path) -> None:
    resctrl, kept = Resctrl(HARDWARE), Kept(Faults())
    before = resctrl.picture()
    async with running_rig(tmp_path / "1", document(), resctrl, kept) as rig:
        await rig.settled()
        rig.is_killed = True
    assert rig.groups() == ["gold", "silver"]
    async with running_rig(tmp_path / "2", "{}", resctrl, kept) as rig:
        await until(lambda: rig.groups() == [])

    assert resctrl.picture() == before
    assert kept.texts == {}


async def test_without_resctrl_an_annotation_is_refused(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.broken["info"] = errno.EACCES
    async with running_rig(tmp_path, document(), resctrl) as rig:
        await rig.settled()
        with pytest.raises(PluginRefused):
            await rig.create("c0", GOLD)

        assert told(await rig.create("c1"))[0] is None
