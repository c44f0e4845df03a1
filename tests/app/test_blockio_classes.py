"""Block I/O classes of containers: at creation, while they run, after a restart."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import CreateResult
from nri_resmgr.testing.errors import PluginRefused
from nri_resmgr.testing.resctrl import Faults
from tests.app.class_rig import Rig, files_of, running_rig
from tests.app.node import UNSAFE
from tests.host.resctrl.kept import Kept
from tests.waiting import until

KEY = "blockioclass.resource-policy.nri.io"
SLOW: Mapping[str, str] = {KEY: "slow"}
CLASSES = "slow: [{Weight: 50}], fast: [{Weight: 800}]"
THROTTLED = "slow: [{Devices: [/dev/sd?], ThrottleReadBps: 1k}, {Weight: 50}]"


def document(classes: str = CLASSES, *more: str) -> str:
    said = ", ".join(("enable: true", f"classes: {{{classes}}}", *more))
    return f"{{control: {{blockio: {{{said}}}}}}}"


def sent(created: CreateResult) -> tuple[str | None, Mapping[str, str]]:
    """Return what was sent to the runtime: the name of a class, and files."""
    resources = created.adjustment.resources
    return resources.blockio_class, dict(resources.unified)


def add_disks(host: Path, *names: str) -> None:
    """Make disks 8:0, 8:16 and so on."""
    for place, name in enumerate(names):
        path = host / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(8, place * 16))
        except PermissionError:
            pytest.skip("device files can be made with CAP_MKNOD only")
        folder = host / f"sys/devices/{name}"
        files_of(folder, {"dev": f"8:{place * 16}\n", "queue/scheduler": "[none]\n"})
        link = host / f"sys/dev/block/8:{place * 16}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../devices/{name}")


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        pytest.param(document(), {}, (None, {}), id="none without a request"),
        pytest.param(
            document(), SLOW, (None, {"io.weight": "405"}), id="files of our own class"
        ),
        pytest.param(
            document("Guaranteed: [{Weight: 1000}]", "usePodQoSAsDefaultClass: true"),
            {},
            (None, {"io.weight": "10000"}),
            id="the QoS class's where that counts",
        ),
        pytest.param(
            document("Burstable: [{Weight: 1000}]", "usePodQoSAsDefaultClass: true"),
            {},
            (None, {}),
            id="a QoS class without a class is dropped",
        ),
        pytest.param(
            "{control: {blockio: {enable: true}}}",
            SLOW,
            ("slow", {}),
            id="the name where the runtime has the classes",
        ),
        pytest.param(
            "{control: {blockio: {enable: true, usePodQoSAsDefaultClass: true}}}",
            {},
            ("Guaranteed", {}),
            id="the QoS class's name where the runtime has the classes",
        ),
        pytest.param("{}", SLOW, (None, {}), id="nothing where it is off"),
    ],
)
async def test_what_a_container_is_created_with(
    tmp_path: Path,
    spec: str,
    annotations: Mapping[str, str],
    expected: tuple[str | None, Mapping[str, str]],
) -> None:
    async with running_rig(tmp_path, spec) as rig:
        assert sent(await rig.create("c0", annotations)) == expected


async def test_what_a_container_has_is_noted_once_the_reply_is_out(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, document()) as rig:
        plugin, noted = rig.node.plugin, rig.node.plugin.class_hosts.blockio
        plugin.create_container(Pod(id="p", annotations=SLOW), Container(id="c0"))
        before = dict(noted.applied)
        await asyncio.sleep(0)

        assert before == {}
        assert noted.applied == {"c0": {"io.weight": ("405",)}}


async def test_an_unknown_class_is_refused(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document()) as rig:
        with pytest.raises(PluginRefused) as found:
            await rig.create("c0", {KEY: "slwo"})

        assert (
            f"default/c0/c0 asks for block I/O class 'slwo' by {KEY}; known: slow, "
            "fast; name one of these, or add the class to the configuration"
        ) in str(found.value)


async def test_what_one_line_cannot_report_is_written_before_the_start(
    tmp_path: Path,
) -> None:
    add_disks(tmp_path / "host", "sda", "sdb")
    async with running_rig(tmp_path, document(THROTTLED)) as rig:
        created = await rig.create("c0", SLOW)
        given = dict(rig.node.plugin.class_hosts.blockio.applied)
        rig.appear("c0", 100)
        await rig.node.runtime.start_container("c0")

        assert sent(created) == (None, {"io.weight": "405", "io.max": "8:0 rbps=1000"})
        assert rig.cgroup_file("c0", "io.max") == "8:16 rbps=1000\n"
        lines = ("8:0 rbps=1000", "8:16 rbps=1000")
        assert given == {"c0": {"io.max": lines, "io.weight": ("405",)}}


async def test_a_disk_that_is_gone_is_not_named(tmp_path: Path) -> None:
    host = tmp_path / "host"
    add_disks(host, "sda", "sdb")
    async with running_rig(tmp_path, document(THROTTLED)) as rig:
        await rig.create("c0", SLOW)
        (host / "dev/sda").unlink()
        (host / "sys/dev/block/8:0").unlink()
        created = await rig.create("c1", SLOW)

        assert sent(created)[1]["io.max"] == "8:16 rbps=1000"


async def test_running_containers_follow_another_configuration(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await start(rig, SLOW)

        rig.reconfigure(document("slow: [{Weight: 1000}]"))
        await until(lambda: rig.cgroup_file("c0", "io.weight") == "10000\n")
        # The runtime would write what was sent before.
        await until(lambda: known(rig) == {"io.weight": "10000"})
        await until(lambda: "10000" in rig.kept.texts.get("blockio", ""))

        rig.reconfigure("{}")
        await until(lambda: rig.cgroup_file("c0", "io.weight") == "100\n")
        await until(lambda: known(rig) == {"io.weight": "100"})
        await until(lambda: "blockio" not in rig.kept.texts)


async def test_where_calls_are_unsafe_news_ride_on_a_reply(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document(), level=UNSAFE) as rig:
        await start(rig, SLOW)
        await rig.create("c1", cpus=0.5)

        rig.reconfigure(document("slow: [{Weight: 1000}]"))
        # Kept once it is sent, which is later than the file.
        await until(lambda: "10000" in rig.kept.texts.get("blockio", ""))
        before = known(rig)
        await rig.node.resize("c1", 0.6)

        assert (before, known(rig)) == ({"io.weight": "405"}, {"io.weight": "10000"})


async def test_a_disk_that_comes_is_limited(tmp_path: Path) -> None:
    async with running_rig(tmp_path, document(THROTTLED)) as rig:
        await start(rig, SLOW)
        add_disks(rig.host, "sda")

        await until(lambda: rig.cgroup_file("c0", "io.max") == "8:0 rbps=1000\n")


async def test_after_a_restart_only_news_are_written(tmp_path: Path) -> None:
    kept = Kept(Faults())
    async with running_rig(tmp_path / "1", document(), kept=kept) as rig:
        await start(rig, SLOW)
        await until(lambda: "blockio" in kept.texts)
    host = rig.node.plugin.class_hosts.blockio

    assert kept.texts["blockio"] == '{"c0":{"io.weight":["405"]}}'
    assert host.applied == {"c0": {"io.weight": ("405",)}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut"),
        pytest.param("[]", id="another kind of text"),
        pytest.param('{"c0": {"io.max": "8:0"}}', id="a line that is no list"),
        pytest.param('{"c0": []}', id="files without names"),
    ],
)
async def test_a_bad_record_is_set_aside(tmp_path: Path, text: str) -> None:
    kept = Kept(Faults())
    kept.texts["blockio"] = text
    async with running_rig(tmp_path, document(), kept=kept) as rig:
        await until(lambda: kept.texts.get("blockio.bad-1") == text)

        assert sent(await rig.create("c0", SLOW))[1] == {"io.weight": "405"}


async def test_a_record_of_what_is_gone_is_dropped(tmp_path: Path) -> None:
    kept = Kept(Faults())
    kept.texts["blockio"] = '{"old": {"io.weight": ["405"]}}'
    async with running_rig(tmp_path, "{}", kept=kept):
        await until(lambda: "blockio" not in kept.texts)


async def start(rig: Rig, annotations: Mapping[str, str]) -> None:
    await rig.create("c0", annotations)
    rig.appear("c0", 100)
    await rig.node.runtime.start_container("c0")


def known(rig: Rig) -> dict[str, str]:
    """Return the files that the runtime knows of the container."""
    container = rig.node.runtime.world.containers["c0"]
    return dict(container.linux.resources.unified)
