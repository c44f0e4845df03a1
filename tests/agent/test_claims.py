"""Claims from the API server to containers, and devices to the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from nri_resmgr.agent.api import Access
from nri_resmgr.agent.claims import answer_of, device_of, slice_name, slice_of
from nri_resmgr.agent.configuration import ConfigScope, custom_resources
from nri_resmgr.agent.daemon_state import ClaimDevice, WantedClaim
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.daemon.dra import DRIVER
from nri_resmgr.testing.kubelet.dra import KubeletClaim
from nri_resmgr.values import CpuSet
from tests.agent.agent_task import agent_task
from tests.agent.fake_api_server import FakeApiServer, Json, status
from tests.daemon.claims import ClaimNode, claim_node
from tests.daemon.spooled import NODE
from tests.waiting import until

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
KINDS = {
    "/nodes",
    "resource.k8s.io/resourceclaims",
    "resource.k8s.io/resourceslices",
    "config.nri/noderesourcemanagers",
    "config.nri/topologyawarepolicies",
}
SLICE = slice_name(NODE, DRIVER)
DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"


def allocated(*results: tuple[str, int], pool: str = NODE) -> Json:
    rows = [
        {
            "request": "cpus",
            "driver": DRIVER,
            "pool": pool,
            "device": device,
            "shareID": f"share-{place}",
            "consumedCapacity": {"cpu": str(count)},
        }
        for place, (device, count) in enumerate(results)
    ]
    rows.append(
        {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "g"}
    )
    return {"allocation": {"devices": {"results": rows}}}


@asynccontextmanager
async def agent_of(node: ClaimNode, access: Access) -> AsyncIterator[None]:
    source = custom_resources(["TopologyAwarePolicy"])
    options = AgentOptions(
        scope=ConfigScope(NODE, "kube-system", source),
        spool=node.folder / "spool",
        control_socket=str(node.folder / "run/control.sock"),
    )
    async with agent_task(access, options):
        yield


def slice_in(server: FakeApiServer) -> Json:
    found: Json = server.objects.get(("resource.k8s.io/resourceslices", "", SLICE), {})
    return found


def capacities(server: FakeApiServer) -> dict[str, str]:
    devices = slice_in(server).get("spec", {}).get("devices", [])
    return {one["name"]: one["capacity"]["cpu"]["value"] for one in devices}


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_a_claim_of_the_cluster(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    """Devices are published, and what the scheduler allocates reaches the kernel."""
    server.kinds = set(KINDS)
    owner = server.put("/api/v1/nodes", {"metadata": {"name": NODE}})["metadata"]["uid"]
    async with (
        claim_node(tmp_path, has_agent=True) as node,
        node.node.daemon(*node.flags),
        agent_of(node, access),
    ):
        calls = await node.registered()
        await until(lambda: capacities(server) == {"numa-0": "3", "numa-1": "4"})
        made = slice_in(server)
        assert made["metadata"]["ownerReferences"][0]["uid"] == owner
        assert made["spec"]["pool"] == {
            "name": NODE,
            "generation": 1,
            "resourceSliceCount": 1,
        }
        # A kubelet removes the slices of its node when it starts.
        server.remove(SLICES, SLICE)
        await until(lambda: capacities(server) == {"numa-0": "3", "numa-1": "4"})
        assert slice_in(server)["spec"]["pool"]["generation"] == 2

        body = {"metadata": {"name": "a"}, "status": allocated(("numa-1", 2))}
        uid = server.put(CLAIMS, body)["metadata"]["uid"]
        claim = KubeletClaim("shop", "a", uid)
        (device,) = (await calls.prepare(claim))[uid].devices
        assert (device.device_name, device.share_id) == ("numa-1", "share-0")
        web = await node.come("web", 2000, claim)
        assert node.cpus(web) == CpuSet.parse(node.saved()[uid])
        # Exclusive CPUs of others are no longer there for claims.
        await node.come("other", 2000)
        await until(lambda: sum(map(int, capacities(server).values())) == 5)
        await node.node.go(web)
        assert (await calls.unprepare(claim))[uid].error == ""

        missing = KubeletClaim("shop", "gone", "u-gone")
        assert "gone" in (await calls.prepare(missing))["u-gone"].error
        other = KubeletClaim("shop", "a", "u-other")
        assert "another claim" in (await calls.prepare(other))["u-other"].error
        unallocated = server.put(CLAIMS, {"metadata": {"name": "b"}})["metadata"]["uid"]
        found = await calls.prepare(KubeletClaim("shop", "b", unallocated))
        assert "has not allocated" in found[unallocated].error


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_an_outage_of_the_api_server(
    server: FakeApiServer, access: Access, tmp_path: Path
) -> None:
    """A claim waits until the API server answers again."""
    server.kinds = set(KINDS)
    server.put("/api/v1/nodes", {"metadata": {"name": NODE}})
    failures = 0

    async def unavailable(request: Any, wire: Any) -> bool:
        nonlocal failures
        if "resourceclaims/" not in request.path or failures > 2:
            return False
        failures += 1
        await wire.answer(503, status(503, "ServiceUnavailable", "shutting down"))
        server.faults.append(unavailable)
        return True

    server.faults.append(unavailable)
    async with (
        claim_node(tmp_path, has_agent=True) as node,
        node.node.daemon(*node.flags),
        agent_of(node, access),
    ):
        calls = await node.registered()
        body = {"metadata": {"name": "a"}, "status": allocated(("numa-0", 1))}
        uid = server.put(CLAIMS, body)["metadata"]["uid"]
        answer = (await calls.prepare(KubeletClaim("shop", "a", uid)))[uid]
        assert (answer.error, failures) == ("", 3)


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_slices_are_as_published(version: str) -> None:
    """The schema is Kubernetes' own, without unknown fields."""
    devices = [
        device_of(ClaimDevice("numa-0", 0, 0, 7, smt=True)),
        device_of(ClaimDevice("numa-1", 1, 1, 8, smt=False)),
    ]
    body = slice_of(NODE, "uid", DRIVER, 3, devices)
    whole = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        **body,
        "metadata": {**body["metadata"], "name": SLICE},
    }
    kubernetes_validate.validate(whole, version, strict=True)
    # What the schema cannot say: 63 bytes for a driver, quantities in order.
    assert len(DRIVER) <= 63
    numa = "resource.kubernetes.io/numaNode"
    assert [one["attributes"][numa] for one in devices] == [{"int": 0}, {"int": 1}]
    for device in devices:
        policy = device["capacity"]["cpu"]["requestPolicy"]
        assert int(policy["validRange"]["min"]) <= int(policy["default"])


def test_a_claim_of_another_node_is_not_served() -> None:
    """The pool of a device is its node."""
    wanted = WantedClaim("ask", "shop", "a", "u")
    claim = {"status": allocated(("numa-0", 1), pool="worker-9")}
    assert answer_of(wanted, claim, DRIVER, NODE)["why"] == (
        "it has devices of node worker-9"
    )


@pytest.mark.parametrize(
    "path", ["samples/cpu-claim.yaml", "options/dra/device-class.yaml"]
)
def test_objects_for_users_are_as_published(path: str) -> None:
    """What users apply has no unknown fields."""
    text = (DEPLOY / path).read_text()
    for body in yaml.safe_load_all(text):
        kubernetes_validate.validate(body, "1.36", strict=True)
    assert DRIVER in text
