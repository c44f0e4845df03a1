"""Adjustments of one plugin and of two, as the suite of Go's adaptation has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nri_proto import nri_pb2
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    CreateReply,
    Device,
    Hook,
    Hooks,
    LinuxResources,
    Mount,
    Plugin,
    Pod,
)
from nri_resmgr.stub.convert import to_message
from nri_resmgr.testing import FieldConflict, Sender
from tests.stub.adjustment_samples import SAMPLES
from tests.stub.conformance.several import several
from tests.stub.live import plugged, recording

EMPTY = ContainerAdjustment()
Adjust = Callable[[ContainerAdjustment], ContainerAdjustment]


def adjusting(reply: ContainerAdjustment | CreateReply) -> Plugin:
    """Make a plugin that answers every creation with *reply*."""
    plugin = Plugin()

    @plugin.handler
    def create_container(_: Pod, __: Container) -> ContainerAdjustment | CreateReply:
        return reply

    return plugin


def updating(update: ContainerUpdate) -> Plugin:
    """Make a plugin that answers every update with *update*."""
    plugin = Plugin()

    @plugin.handler
    def update_container(_: Pod, __: Container, ___: LinuxResources) -> ContainerUpdate:
        return update

    return plugin


@pytest.mark.parametrize("method", sorted(SAMPLES))
async def test_every_adjustment_is_sent_as_built(method: str, tmp_path: Path) -> None:
    adjustment = SAMPLES[method][0](EMPTY)
    async with plugged(tmp_path, adjusting(adjustment)) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        sent = [
            record.body
            for record in runtime.records
            if record.method == "CreateContainer" and record.sender is Sender.PLUGIN
        ]

    assert sent == [nri_pb2.CreateContainerResponse(adjust=to_message(adjustment))]


SET_TWICE: dict[str, tuple[Adjust, Adjust]] = {
    "annotation": (
        lambda a: a.set_annotation("k", "1"),
        lambda a: a.replace_annotation("k", "2"),
    ),
    "env": (lambda a: a.set_env("A", "1"), lambda a: a.replace_env("A", "2")),
    "args": (lambda a: a.set_args(["a"]), lambda a: a.replace_args(["b"])),
    "mount": (
        lambda a: a.set_mount(Mount("/m", "bind", "/1")),
        lambda a: a.replace_mount(Mount("/m", "bind", "/2")),
    ),
    "device": (
        lambda a: a.set_device(Device("/dev/x", "c", 1, 1)),
        lambda a: a.replace_device(Device("/dev/x", "c", 2, 2)),
    ),
    "sysctl": (lambda a: a.set_sysctl("s", "1"), lambda a: a.replace_sysctl("s", "2")),
    "net device": (
        lambda a: a.set_net_device("e", "1"),
        lambda a: a.replace_net_device("e", "2"),
    ),
    "RDT": (
        lambda a: a.set_rdt_clos_id("1"),
        lambda a: a.remove_rdt().set_rdt_clos_id("2"),
    ),
}


@pytest.mark.parametrize("what", SET_TWICE)
async def test_two_plugins_cannot_both_set(what: str, tmp_path: Path) -> None:
    first = adjusting(SET_TWICE[what][0](EMPTY))
    plugins = {"10-b": first, "00-a": first}
    async with several(tmp_path, plugins) as runtime:
        pod = await runtime.run_pod(Pod())
        with pytest.raises(FieldConflict) as conflict:
            await runtime.create_container(pod.id, Container())

        assert (conflict.value.plugin, conflict.value.owner) == ("10-b", "00-a")
        assert runtime.containers == ()


@pytest.mark.parametrize("what", SET_TWICE)
async def test_the_second_plugin_may_replace(what: str, tmp_path: Path) -> None:
    first, second = (adjusting(change(EMPTY)) for change in SET_TWICE[what])
    async with several(tmp_path, {"00-a": first, "10-b": second}) as runtime:
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    container, linux = created.container, created.container.linux
    wanted = created.adjustment.linux
    assert linux is not None
    assert wanted is not None or what not in ("net device", "RDT")
    seen: dict[str, Callable[[], object]] = {
        "annotation": lambda: container.annotations["k"] == "2",
        "env": lambda: container.env == ("A=2",),
        "args": lambda: container.args == ("b",),
        "mount": lambda: [mount.source for mount in container.mounts] == ["/2"],
        "device": lambda: [device.major for device in linux.devices] == [2],
        "sysctl": lambda: linux.sysctl["s"] == "2",
        "net device": lambda: wanted and wanted.net_devices["e"].name == "2",
        "RDT": lambda: wanted and wanted.rdt and wanted.rdt.clos_id == "2",
    }
    assert seen[what]()


async def test_hooks_of_two_plugins_add_up(tmp_path: Path) -> None:
    plugins = {
        name: adjusting(EMPTY.add_hooks(Hooks(poststop=(Hook(f"/{name}"),))))
        for name in ("10-b", "00-a")
    }
    async with several(tmp_path, plugins) as runtime:
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container())

    hooks = created.container.hooks
    assert hooks is not None
    assert [hook.path for hook in hooks.poststop] == ["/00-a", "/10-b"]


UPDATES: dict[str, ContainerUpdate] = {
    "cpu": ContainerUpdate("ctr0").set_cpus("0").set_cpu_shares(2),
    "memory": ContainerUpdate("ctr0").set_memory_limit(1),
    "classes": ContainerUpdate("ctr0").set_blockio_class("b").set_rdt_class("r"),
    "hugepages": ContainerUpdate("ctr0").set_hugepage_limit("2MB", 1),
    "unified": ContainerUpdate("ctr0").set_unified("k", "v"),
}


@pytest.mark.parametrize("what", UPDATES)
async def test_updates_during_a_creation(what: str, tmp_path: Path) -> None:
    idle = recording([], "stop_container")
    reply = CreateReply(updates=(UPDATES[what],))
    async with several(tmp_path, {"00-a": adjusting(reply), "10-b": idle}) as (runtime):
        pod = await runtime.run_pod(Pod())
        created = await runtime.create_container(pod.id, Container(id="new"))

    assert created.updates == (UPDATES[what],)


@pytest.mark.parametrize("what", UPDATES)
async def test_two_plugins_cannot_both_update(what: str, tmp_path: Path) -> None:
    plugin = adjusting(CreateReply(updates=(UPDATES[what],)))
    async with several(tmp_path, {"00-a": plugin, "10-b": plugin}) as runtime:
        pod = await runtime.run_pod(Pod())
        with pytest.raises(FieldConflict):
            await runtime.create_container(pod.id, Container(id="new"))

        assert runtime.containers == ()


@pytest.mark.parametrize("what", UPDATES)
async def test_solicited_updates_are_laid_over_the_request(
    what: str, tmp_path: Path
) -> None:
    async with plugged(tmp_path, updating(UPDATES[what])) as (runtime, _):
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        asked = ContainerUpdate("ctr0").set_cpu_quota(9).resources
        updated = await runtime.update_container("ctr0", asked)

    assert updated.updates == (UPDATES[what].set_cpu_quota(9),)


@pytest.mark.parametrize("what", UPDATES)
async def test_two_plugins_cannot_both_change_an_update(
    what: str, tmp_path: Path
) -> None:
    plugin = updating(UPDATES[what])
    async with several(tmp_path, {"00-a": plugin, "10-b": plugin}) as runtime:
        pod = await runtime.run_pod(Pod())
        await runtime.create_container(pod.id, Container())
        with pytest.raises(FieldConflict):
            await runtime.update_container("ctr0", LinuxResources())
