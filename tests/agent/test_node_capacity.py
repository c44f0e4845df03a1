"""Extended resources in the status of a Node: only our own names."""

from __future__ import annotations

import asyncio

import pytest

from nri_resmgr.agent.api import NODES, Access, ApiClient
from nri_resmgr.agent.daemon_state import Daemon, DaemonState, ExtendedResource
from nri_resmgr.agent.node_capacity import CapacityReporter
from tests.agent.fake_api_server import FakeApiServer, Json

CPUS = "resource-policy.nri.io/exclusive-cpus"
OURS = "cmk.intel.com/exclusive-cores"
OTHERS = {"cpu": "8", "example.com/other": "1k"}


def node_with(
    capacity: Json, *own: str, manager: str = "nri-resmgr", operation: str = "Apply"
) -> Json:
    fields: Json = {f"f:{name}": {} for name in own}
    written = {"f:status": {"f:capacity": fields}}
    rows = [
        {"manager": manager, "operation": operation, "fieldsV1": written},
        {"manager": "nri-resmgr", "fieldsV1": {"f:metadata": {}}},
        {"manager": "kubelet", "fieldsV1": {"f:status": {"f:capacity": {"f:cpu": {}}}}},
    ]
    return {
        "metadata": {"name": "node-a", "managedFields": rows},
        "status": {"capacity": {**OTHERS, **capacity}},
    }


def state_of(*, dry_run: bool = False, **values: int) -> DaemonState:
    names = {"cpus": CPUS, "ours": OURS}
    found = [
        ExtendedResource(names[name], "node-status", count)
        for name, count in values.items()
    ]
    served = ExtendedResource("served.example/by-kubelet", "device-plugin", 5)
    return DaemonState(Daemon("", dry_run), extended_resources=(*found, served))


def capacity(server: FakeApiServer) -> Json:
    found: Json = server.objects["/nodes", "", "node-a"]["status"]["capacity"]
    return found


def writes(server: FakeApiServer) -> int:
    return sum(one.method == "PATCH" for one in server.requests)


@pytest.mark.parametrize(
    ("node", "state", "after"),
    [
        (node_with({}), state_of(cpus=3), {CPUS: "3"}),
        # A kubelet sets what it does not know to zero.
        (node_with({CPUS: "0"}), state_of(cpus=3), {CPUS: "3"}),
        (node_with({CPUS: "3"}, CPUS), state_of(cpus=3), {CPUS: "3"}),
        (node_with({CPUS: "1k"}, CPUS), state_of(cpus=1000), {CPUS: "1k"}),
        (
            node_with({OURS: "2", CPUS: "3"}, OURS, CPUS),
            state_of(cpus=3),
            {CPUS: "3"},
        ),
        (node_with({OURS: "2"}, OURS), state_of(), {}),
        # What another one wrote is not ours, whatever its name.
        (node_with({OURS: "2"}), state_of(), {OURS: "2"}),
        (node_with({OURS: "2"}, OURS), state_of(dry_run=True, ours=5), {}),
    ],
)
async def test_only_our_names_are_written_and_removed(
    server: FakeApiServer,
    access: Access,
    node: Json,
    state: DaemonState,
    after: Json,
) -> None:
    server.put(NODES.path(), node)
    before = node["status"]["capacity"]
    async with ApiClient.open(access) as api:
        await CapacityReporter(api, "node-a").write(state)

    assert capacity(server) == {**OTHERS, **after}
    assert writes(server) == (before != {**OTHERS, **after})


@pytest.mark.parametrize(
    "by",
    [
        {"manager": "kubectl"},
        # The API server takes a merge patch as a write of other names, too.
        {"operation": "Update"},
    ],
)
async def test_names_that_another_manager_wrote_stay(
    server: FakeApiServer, access: Access, by: dict[str, str]
) -> None:
    server.put(NODES.path(), node_with({OURS: "2"}, OURS, **by))
    async with ApiClient.open(access) as api:
        await CapacityReporter(api, "node-a").write(state_of(cpus=1))

    assert capacity(server) == {**OTHERS, OURS: "2", CPUS: "1"}


async def test_the_node_is_looked_at_again_only_where_something_is_wanted(
    server: FakeApiServer, access: Access
) -> None:
    server.put(NODES.path(), node_with({}))
    async with ApiClient.open(access) as api:
        idle = CapacityReporter(api, "node-a")
        assert await idle.write(None) == 0
        assert [await idle.write(state_of()) for _ in range(3)] == [0, 0, 0]
        asked = len(server.requests)

        busy = CapacityReporter(api, "node-a", check=0.01)
        assert await busy.write(state_of(cpus=2)) > 0
        server.put(NODES.path(), node_with({CPUS: "0"}, CPUS))
        await asyncio.sleep(0.02)
        await busy.write(state_of(cpus=2))

    assert asked == 1
    assert capacity(server)[CPUS] == "2"
