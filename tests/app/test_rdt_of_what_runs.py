"""RDT classes of what runs: other documents, threads, failures, the end, a crash."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nri_resmgr.testing.errors import PluginRefused
from nri_resmgr.testing.resctrl import Faults, Resctrl
from tests.app.class_rig import HARDWARE, Rig, running_rig
from tests.app.rdt_words import GOLD, KEY, document, sent
from tests.host.resctrl.kept import Kept
from tests.waiting import until


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

        # The class goes, with containers in it that asked for nothing else.
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


async def test_a_group_changed_by_another_program_is_set_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await rig.settled()
        rig.resctrl.write("gold/schemata", "L3:0=1\n")

        await until(lambda: "L3:0=fffff;1=fffff" in rig.schemata("gold"))


async def test_pods_have_monitoring_groups_until_they_are_removed(
    tmp_path: Path,
) -> None:
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
        removed = [one.path for one in rig.resctrl.commands if one.what == "rmdir"]
        assert removed == []
        await rig.node.runtime.stop_pod("pod-c0")

        await until(lambda: rig.resctrl.names("gold/mon_groups") == ())


async def test_a_group_that_the_kernel_refuses_is_reported_and_retried(
    tmp_path: Path,
) -> None:
    resctrl = Resctrl(HARDWARE)
    for number in range(HARDWARE.closids - 1):
        resctrl.mkdir(f"other{number}")
    async with running_rig(tmp_path, document(), resctrl) as rig:
        await rig.settled()
        host = rig.node.plugin.class_hosts.rdt
        with pytest.raises(PluginRefused) as found:
            await rig.create("c0", GOLD)
        assert "which this node does not have: 2 RDT classes" in str(found.value)
        assert list(host.problems.present) == ["groups"]
        for number in range(2):
            resctrl.rmdir(f"other{number}")
        await until(lambda: not host.problems.present)

        assert sent(await rig.create("c0", GOLD)) == ("gold", None)


async def test_after_a_kill_nothing_claims_the_groups(tmp_path: Path) -> None:
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

        assert sent(await rig.create("c1"))[0] is None


ROOT_GROUP = "mon_groups"
MONITORS = "{control: {rdt: {monitorPods: true}}}"


async def start(rig: Rig, name: str, task: int, group: str = "") -> None:
    rig.appear(name, task, group=group)
    await rig.node.runtime.start_container(name)


async def test_pods_are_monitored_without_any_class(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("other")
    async with running_rig(tmp_path, MONITORS, resctrl) as rig:
        await rig.settled()
        # Nothing asks for classes here: the annotation is another plugin's.
        created = await rig.create("c0", {KEY: "unknown"})
        await rig.create("c1")
        await start(rig, "c0", 100)
        await start(rig, "c1", 200, "other")
        await until(lambda: rig.tasks(f"{ROOT_GROUP}/uid-c0") == "100")
        # It stays in the group in which the other program has put it.
        await until(lambda: rig.tasks(f"other/{ROOT_GROUP}/uid-c1") == "200")

        assert sent(created) == (None, None)
        assert rig.groups() == ["other"]
        written = [one.path for one in resctrl.commands if one.what == "write"]
        assert not [path for path in written if path.endswith("schemata")]

        rig.reconfigure("{}")
        await until(lambda: resctrl.names(ROOT_GROUP) == ())
        await until(lambda: resctrl.names(f"other/{ROOT_GROUP}") == ())
    assert rig.groups() == ["other"]


@pytest.mark.parametrize(
    ("filters", "monitored"),
    [
        pytest.param("{}", ["uid-c0", "uid-c1"], id="all"),
        pytest.param("{namespaces: [default]}", ["uid-c0", "uid-c1"], id="namespace"),
        pytest.param("{namespaces: [shop, d*]}", ["uid-c0", "uid-c1"], id="pattern"),
        pytest.param("{namespaces: [shop]}", [], id="another namespace"),
        pytest.param("{labelSelector: {app: c1}}", ["uid-c1"], id="label"),
        pytest.param("{labelSelector: {app: c1, tier: web}}", [], id="all labels"),
        pytest.param(
            "{namespaces: [shop], labelSelector: {app: c1}}", [], id="both filters"
        ),
    ],
)
async def test_only_chosen_pods_are_monitored(
    tmp_path: Path, filters: str, monitored: list[str]
) -> None:
    spec = f"{{control: {{rdt: {{monitorPods: true, monitoring: {filters}}}}}}}"
    async with running_rig(tmp_path, spec) as rig:
        await rig.settled()
        for number, name in enumerate(("c0", "c1")):
            await rig.create(name, labels={"app": name})
            await start(rig, name, 100 + number)
        await rig.compared()

        assert sorted(rig.resctrl.names(ROOT_GROUP)) == monitored


async def test_another_filter_keeps_the_counters_of_pods_that_stay(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, MONITORS) as rig:
        await rig.settled()
        for number, name in enumerate(("c0", "c1")):
            await rig.create(name, labels={"app": name})
            await start(rig, name, 100 + number)
        await until(lambda: len(rig.resctrl.names(ROOT_GROUP)) == 2)

        more = "monitoring: {labelSelector: {app: c1}}"
        rig.reconfigure(f"{{control: {{rdt: {{monitorPods: true, {more}}}}}}}")
        await until(lambda: rig.resctrl.names(ROOT_GROUP) == ("uid-c1",))
        removed = [one.path for one in rig.resctrl.commands if one.what == "rmdir"]

    assert removed == [f"{ROOT_GROUP}/uid-c0"]
