"""Claims as a kubelet prepares them, on the real daemon."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.cli.render_status import render_status
from nri_resmgr.daemon.dra import DRIVER
from nri_resmgr.host.cdi import CdiFiles, CdiUnwritable
from nri_resmgr.kubelet._gen import dra_pb2 as pb
from nri_resmgr.kubelet.dra import PluginPaths, SocketPathTooLong
from nri_resmgr.testing.kubelet.dra import DraCalls, KubeletClaim, PluginManager
from nri_resmgr.values import CpuSet
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.claims import DOCUMENT, A, B, ClaimNode, claim_node
from tests.daemon.spooled import NODE
from tests.waiting import until

pytestmark = pytest.mark.process

Answers = dict[str, str]


def errors(
    found: Mapping[str, pb.NodePrepareResourceResponse]
    | Mapping[str, pb.NodeUnprepareResourceResponse],
) -> Answers:
    return {uid: one.error for uid, one in found.items()}


async def test_a_claim_from_its_preparation_to_its_end(tmp_path: Path) -> None:
    """Its CPUs are its own before, between and after its containers."""
    async with claim_node(tmp_path) as node, node.node.daemon(*node.flags):
        node.allocations["a"] = {"numa-1": 2}
        log = await node.come("log", 100)
        calls = await node.registered()
        (device,) = (await calls.prepare(A))[A.uid].devices
        assert (device.pool_name, device.device_name) == (NODE, "numa-1")
        assert list(device.request_names) == ["r"]
        assert list(device.cdi_device_ids) == [f"{DRIVER}/claim={A.uid}"]
        assert not device.HasField("share_id")
        claimed = CpuSet.parse(node.saved()[A.uid])
        assert len(claimed) == 2
        assert claimed <= CpuSet.parse("4-7")

        shown = await node.claims()
        assert mistakes(shown, "Claims") == []
        assert (shown["problem"], shown["wanted"]) == ("", [])
        assert shown["devices"][1]["claimed"] == str(claimed)
        await until(lambda: claimed.isdisjoint(node.cpus(log)))
        first = await node.come("web", 2000, A)
        assert node.cpus(first) == claimed
        # Another one gets none of them, and one that asks for its own gets its own.
        assert claimed.isdisjoint(node.cpus(await node.come("other", 2000)))
        state = await ask(node.client, "/v1/state")
        assert mistakes(state, "State") == []
        row = render_status(state).splitlines()[-1].split()
        assert row == ["shop/a", str(claimed), "numa-1:2", "default/web/web"]
        why = (await ask(node.client, "/v1/explain", pod="web"))["containers"][0]
        assert why["placement"]["rule"] == "claimed"
        assert "claim shop/a" in why["placement"]["sentences"]
        refused = errors(await calls.unprepare(A))
        assert "still has the CPUs of claim shop/a" in refused[A.uid]

        await node.node.go(first)
        second = await node.come("web", 2000, A)
        assert node.cpus(second) == claimed
        await node.node.go(second)
        assert errors(await calls.unprepare(A)) == {A.uid: ""}
        assert node.files() == node.saved() == {}
        # Again, and one that was never prepared.
        assert errors(await calls.unprepare(A, B)) == {A.uid: "", B.uid: ""}


async def test_environment_alone_gives_no_cpus(tmp_path: Path) -> None:
    """A pod that sets the variable of another pod's claim has none of its CPUs."""
    async with claim_node(tmp_path) as node, node.node.daemon(*node.flags):
        node.allocations["a"] = {"numa-1": 2}
        await (await node.registered()).prepare(A)
        claimed = CpuSet.parse(node.saved()[A.uid])
        name, _, _ = node.variable(A).partition("=")
        liar = await node.come_with("liar", 100, f"{name}={claimed}")
        assert claimed.isdisjoint(node.cpus(liar))
        assert (await node.node.says("claim.unknown"))["variables"] == [name]


async def test_both_versions_and_several_claims(tmp_path: Path) -> None:
    """A pod can have several claims, and a claim CPUs of several devices."""
    async with claim_node(tmp_path) as node, node.node.daemon(*node.flags):
        node.allocations |= {"a": {"numa-0": 1, "numa-1": 2}, "b": {"numa-0": 1}}
        info = await PluginManager(node.kubelet).info(DRIVER)
        assert (info.type, info.name) == ("DRAPlugin", DRIVER)
        assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        old = DraCalls(Path(info.endpoint), "v1beta1")
        assert errors(await old.prepare(A, B)) == {A.uid: "", B.uid: ""}
        again = await DraCalls(Path(info.endpoint), "v1").prepare(A, B)
        assert [one.device_name for one in again[A.uid].devices] == ["numa-0", "numa-1"]
        saved = {uid: CpuSet.parse(cpus) for uid, cpus in node.saved().items()}
        assert saved[A.uid].isdisjoint(saved[B.uid])
        pod = await node.come("web", 4000, A, B)
        assert node.cpus(pod) == saved[A.uid] | saved[B.uid]
        for version in ("v1", "v1alpha1"):
            health = await DraCalls(Path(info.endpoint)).health(version)
            devices = [
                (one.device.pool_name, one.device.device_name, one.health)
                for one in health.devices
            ]
            assert devices == [(NODE, "numa-0", 1), (NODE, "numa-1", 1)]


async def test_refusals_are_sentences(tmp_path: Path) -> None:
    """What is missing is in the events of the pod, by the kubelet."""
    async with claim_node(tmp_path) as node, node.node.daemon(*node.flags):
        node.allocations |= {
            "a": {"numa-0": 4},
            "b": {},
            "c": {"numa-9": 1},
        }
        node.why["d"] = "it is allocated to node worker-2"
        calls = await node.registered()
        c = KubeletClaim("shop", "c", "cc")
        d = KubeletClaim("shop", "d", "dd")
        evil = KubeletClaim("shop", "evil", "../evil")
        node.allocations["evil"] = {"numa-1": 1}
        found = errors(await calls.prepare(A, B, c, d, evil))
        assert "asks for 4 CPUs of numa-0 (CPU 1-3)" in found[A.uid]
        assert "no device of this driver" in found[B.uid]
        assert "has numa-0, numa-1" in found["cc"]
        assert found["dd"] == "claim shop/d: it is allocated to node worker-2"
        assert "not a valid file name" in found["../evil"]
        assert node.files() == node.saved() == {}


@pytest.mark.parametrize("step", ["prepared", "running", "ended", "returned"])
async def test_kills_between_the_steps(tmp_path: Path, step: str) -> None:
    """A daemon that is killed goes on with the claims that the kubelet knows of."""
    async with claim_node(tmp_path) as node:
        node.allocations["a"] = {"numa-1": 2}
        web = ""
        async with node.node.daemon(*node.flags) as process:
            calls = await node.registered()
            assert errors(await calls.prepare(A)) == {A.uid: ""}
            claimed, files = CpuSet.parse(node.saved()[A.uid]), node.files()
            if step != "prepared":
                web = await node.come("web", 2000, A)
            if step in ("ended", "returned"):
                await node.node.go(web)
            if step == "returned":
                assert errors(await calls.unprepare(A)) == {A.uid: ""}
            process.send_signal(signal.SIGKILL)
            await process.wait()
        for one in (tmp_path / "cdi").glob("*"):
            one.unlink()  # as a reboot does
        async with node.node.daemon(*node.flags):
            calls = await node.registered()
            if step == "returned":
                assert node.saved() == {}
                assert errors(await calls.unprepare(A)) == {A.uid: ""}
                return
            assert errors(await calls.prepare(A)) == {A.uid: ""}
            assert node.files() == files
            assert CpuSet.parse(node.saved()[A.uid]) == claimed
            if step == "running":
                assert node.cpus(web) == claimed
                await node.node.go(web)
            assert claimed.isdisjoint(node.cpus(await node.come("other", 2000)))
            assert errors(await calls.unprepare(A)) == {A.uid: ""}


async def preparing(calls: DraCalls) -> asyncio.Task[Any]:
    """Begin to prepare a claim."""
    return asyncio.create_task(calls.prepare(A))


async def giving_back(calls: DraCalls) -> asyncio.Task[Any]:
    """Prepare a claim, and begin to give it back."""
    assert errors(await calls.prepare(A)) == {A.uid: ""}
    return asyncio.create_task(calls.unprepare(A))


@pytest.mark.parametrize(
    "begin", [preparing, giving_back], ids=lambda one: one.__name__
)
async def test_a_kill_while_a_claim_is_changed(
    tmp_path: Path, begin: Callable[[DraCalls], Awaitable[asyncio.Task[Any]]]
) -> None:
    """The kubelet has no answer, and calls again; nothing is lost or taken twice."""
    async with claim_node(tmp_path) as node:
        node.allocations["a"] = {"numa-1": 3}
        for wait in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2):
            async with node.node.daemon(*node.flags) as process:
                task = await begin(await node.registered())
                await asyncio.sleep(wait)
                process.send_signal(signal.SIGKILL)
                await process.wait()
                await asyncio.wait({task})
                task.exception()
        async with node.node.daemon(*node.flags):
            calls = await node.registered()
            if begin is preparing:
                assert errors(await calls.prepare(A)) == {A.uid: ""}
                (device,) = await claimed_devices(node)
                assert device["name"] == "numa-1"
                assert len(CpuSet.parse(device["claimed"])) == 3
            assert errors(await calls.unprepare(A)) == {A.uid: ""}
            assert node.saved() == node.files() == {}
            assert await claimed_devices(node) == []


async def claimed_devices(node: ClaimNode) -> list[Any]:
    """Return the devices of which a claim has CPUs."""
    return [one for one in (await node.claims())["devices"] if one["claimed"]]


async def test_claims_stay_when_the_document_changes(tmp_path: Path) -> None:
    """A document that takes their CPUs is refused, and without driver they end."""
    async with claim_node(tmp_path) as node, node.node.daemon(*node.flags):
        node.allocations["a"] = {"numa-1": 4}
        calls = await node.registered()
        assert errors(await calls.prepare(A)) == {A.uid: ""}
        document = tmp_path / "document.yaml"
        document.write_text(DOCUMENT.replace("cpuset:0", "cpuset:7"))
        rejected = await node.node.says("configuration.rejected")
        assert "takes the CPUs of claim shop/a" in rejected["why"]
        document.write_text(DOCUMENT.replace("enabled: true", "enabled: false"))
        async with asyncio.timeout(30):
            while (shown := await node.claims())["devices"]:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.02)
        assert (shown["devices"], len(shown["claims"])) == ([], 1)
        assert errors(await calls.unprepare(A)) == {A.uid: ""}
        registry = node.kubelet / "plugins_registry"
        await until(lambda: not list(registry.iterdir()))


async def test_off_by_default(tmp_path: Path) -> None:
    """Without ``dra.enabled`` there is no socket."""
    document = DOCUMENT.replace("  dra: {enabled: true}\n", "")
    async with claim_node(tmp_path, document) as node, node.node.daemon(*node.flags):
        await node.node.says("control.listening")
        shown = await node.claims()
        assert mistakes(shown, "Claims") == []
        assert "dra.enabled" in shown["problem"]
        assert not list(node.kubelet.iterdir())


def test_paths_of_sockets_are_short_enough(tmp_path: Path) -> None:
    """A unix socket's path has 107 bytes at most."""
    root = Path("/" + "k" * (107 - len(f"/plugins_registry/{DRIVER}-reg.sock") - 1))
    assert len(str(PluginPaths.of(root, DRIVER).registration)) == 107
    with pytest.raises(SocketPathTooLong, match="has 108 bytes"):
        PluginPaths.of(Path(f"{root}k"), DRIVER)


def test_files_of_claims_are_secret(tmp_path: Path) -> None:
    """They have what proves that a container has the claim."""
    files = CdiFiles(tmp_path / "cdi", f"{DRIVER}/claim")
    files.write("aa", ("NAME=secret",))
    files.write("aa", ("NAME=secret",))
    (path,) = (tmp_path / "cdi").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CdiUnwritable):
        files.write("a/../b", ())
    files.remove("aa")
    files.remove("aa")
    assert not list((tmp_path / "cdi").iterdir())
