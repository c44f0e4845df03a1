"""Entries of nodes in the status of adjustments: few, and written if they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from nri_resmgr.agent.adjustment_status import AdjustmentReporter, patch_of
from nri_resmgr.agent.adjustments import ADJUSTMENTS
from nri_resmgr.agent.api import Access, ApiClient, ApiError, ApiObject, Target
from nri_resmgr.agent.daemon_state import JudgedAdjustment, JudgedObject
from nri_resmgr.agent.object_status import MOST_NODES
from tests.agent.adjusted import KIND, NAMESPACE, PATH, adjustment, entries_of, seen
from tests.agent.fake_api_server import FakeApiServer, Json, Request, Wire, status

NODE = "a"
CONFLICT = {"web": "cache: conflicting adjustments for web:web: x,y"}
OTHER = {"next": "cache: conflicting adjustments for next:next: x,y"}


@pytest.fixture
def adjustments(server: FakeApiServer) -> FakeApiServer:
    """A server that has this kind."""
    server.kinds.add(KIND)
    return server


def verdict(
    found: ApiObject, errors: Mapping[str, str] | None = None
) -> JudgedAdjustment:
    named = JudgedObject(found.name, found.uid)
    return JudgedAdjustment(
        named, "rejected" if errors else "accepted", dict(errors or {})
    )


async def watched(api: ApiClient) -> dict[str, ApiObject]:
    """What a watch has brought by now."""
    found = await api.list(Target(ADJUSTMENTS, NAMESPACE))
    return {one.name: one for one in found}


async def report(
    api: ApiClient,
    reporter: AdjustmentReporter,
    errors: Mapping[str, str] | None = None,
) -> float:
    """Have all adjustments judged alike, and reported."""
    found = await watched(api)
    return await reporter.write(found, [verdict(one, errors) for one in found.values()])


def entries(server: FakeApiServer, name: str = "x") -> Json:
    body = server.objects[KIND, NAMESPACE, name]
    found: Json = body.get("status", {}).get("nodes", {})
    return found


def writes(server: FakeApiServer) -> int:
    return sum(one.method == "PATCH" for one in server.requests)


@pytest.mark.parametrize(
    ("entry", "judged", "patch"),
    [
        pytest.param(None, {}, {"errors": {}}, id="in force"),
        pytest.param({"errors": {}}, {}, None, id="in force before"),
        pytest.param(None, CONFLICT, {"errors": CONFLICT}, id="conflict"),
        pytest.param({"errors": CONFLICT}, CONFLICT, None, id="the same conflict"),
        pytest.param(
            {"errors": CONFLICT},
            OTHER,
            {"errors": {"web": None, **OTHER}},
            id="another conflict",
        ),
        pytest.param({"errors": None}, {}, {"errors": {}}, id="null"),
        pytest.param("text", {}, {"errors": {}}, id="no entry of ours"),
    ],
)
def test_a_patch_has_what_differs(
    entry: object, judged: Mapping[str, str], patch: Json | None
) -> None:
    nodes: Json = {} if entry is None else {NODE: entry}
    found = seen(adjustment("x", entries=nodes))
    wanted = None if patch is None else {"status": {"nodes": {NODE: patch}}}

    assert patch_of(found, verdict(found, judged), NODE) == wanted


def test_an_entry_is_removed_where_the_scope_has_other_nodes() -> None:
    ignored = JudgedAdjustment(JudgedObject("x", "uid-1"), "ignored")
    here: Json = {NODE: {"errors": {}}}
    ours, none = (seen(adjustment("x", entries=nodes)) for nodes in (here, {}))

    assert patch_of(ours, ignored, NODE) == {"status": {"nodes": {NODE: None}}}
    assert patch_of(none, ignored, NODE) is None


async def test_nodes_that_write_at_once_leave_no_more_entries_than_there_may_be(
    adjustments: FakeApiServer, access: Access
) -> None:
    adjustments.put(PATH, adjustment("x", entries=entries_of(MOST_NODES - 3)))

    async def settle(api: ApiClient, node: str) -> None:
        reporter = AdjustmentReporter(api, node, lambda: 0.001)
        while pause := await report(api, reporter):  # noqa: ASYNC110 - of the server
            await asyncio.sleep(pause)

    async with ApiClient.open(access) as api, asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(settle(api, f"node-{number}"))

    assert len(entries(adjustments)) == MOST_NODES


async def test_a_node_without_room_writes_nothing_even_when_there_is_some(
    adjustments: FakeApiServer, access: Access
) -> None:
    adjustments.put(PATH, adjustment("x", entries=entries_of(MOST_NODES)))
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE)
        for count in (MOST_NODES, MOST_NODES - 1):
            adjustments.put(PATH, adjustment("x", entries=entries_of(count)))
            assert not await report(api, reporter)
        assert writes(adjustments) == 0

        # All nodes spread what they report on another specification.
        entries_now = entries_of(MOST_NODES - 1)
        classes = {"rdt": "fast"}
        adjustments.put(PATH, adjustment("x", entries=entries_now, classes=classes))
        await report(api, reporter)

    assert NODE in entries(adjustments)


async def test_a_node_with_an_entry_changes_and_removes_it_in_a_full_one(
    adjustments: FakeApiServer, access: Access
) -> None:
    full = entries_of(MOST_NODES - 1) | {NODE: {"errors": CONFLICT}}
    adjustments.put(PATH, adjustment("x", entries=full))
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE)
        await report(api, reporter)
        changed = entries(adjustments)[NODE]
        found = await watched(api)
        gone = JudgedAdjustment(JudgedObject("x", found["x"].uid), "ignored")
        await reporter.write(found, [gone])

    assert changed == {"errors": {}}
    assert len(entries(adjustments)) == MOST_NODES - 1


async def test_a_node_that_was_outrun_waits_whatever_changes_meanwhile(
    adjustments: FakeApiServer, access: Access
) -> None:
    async def change_first(request: Request, wire: Wire) -> bool:
        if request.method != "PATCH":
            return False
        await wire.answer(409, status(409, "Conflict", "modified", name="x"))
        return True

    adjustments.put(PATH, adjustment("x"))
    adjustments.faults.append(change_first)
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE, lambda: 0.5)
        first = await report(api, reporter)
        adjustments.put(PATH, adjustment("x", entries=entries_of(1)))
        second = await report(api, reporter)

    assert first == 5.0
    assert 0.0 < second <= first
    assert writes(adjustments) == 1


async def test_an_entry_is_written_once_until_the_watch_brings_it(
    adjustments: FakeApiServer, access: Access
) -> None:
    adjustments.put(PATH, adjustment("x"))
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE)
        before = await watched(api)
        for _ in range(3):
            await reporter.write(before, [verdict(before["x"])])
        assert writes(adjustments) == 1
        await report(api, reporter)
        await report(api, reporter, CONFLICT)

    assert writes(adjustments) == 2
    assert entries(adjustments)[NODE] == {"errors": CONFLICT}


@pytest.mark.parametrize("former", [{}, {NODE: {"errors": CONFLICT}}])
async def test_versions_from_before_a_write_do_not_repeat_it(
    adjustments: FakeApiServer, access: Access, former: Json
) -> None:
    adjustments.put(PATH, adjustment("x", entries=former))
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE)
        before = await watched(api)
        # Another node's write, which the watch brings after ours was sent.
        adjustments.put(PATH, adjustment("x", entries=former | entries_of(1)))
        between = await watched(api)
        await reporter.write(between, [verdict(between["x"])])
        for found in (before, between, before):
            await reporter.write(found, [verdict(found["x"])])

    assert writes(adjustments) == 1
    assert entries(adjustments)[NODE] == {"errors": {}}


async def test_an_entry_that_somebody_undoes_is_written_again_after_a_while(
    adjustments: FakeApiServer, access: Access
) -> None:
    lag = 0.05
    adjustments.put(PATH, adjustment("x"))
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE, lag=lag)
        await report(api, reporter)
        adjustments.put(PATH, adjustment("x"))
        pause = await report(api, reporter)
        assert 0.0 < pause <= lag
        assert entries(adjustments) == {}
        await asyncio.sleep(lag)
        assert not await report(api, reporter)

    assert entries(adjustments) == {NODE: {"errors": {}}}


async def test_a_deleted_adjustment_is_not_a_failure(
    adjustments: FakeApiServer, access: Access
) -> None:
    for name in ("x", "y"):
        adjustments.put(PATH, adjustment(name))
    async with ApiClient.open(access) as api:
        before = await watched(api)
        adjustments.remove(PATH, "x")
        judged = [verdict(one) for one in before.values()]
        assert not await AdjustmentReporter(api, NODE).write(before, judged)

    assert NODE in entries(adjustments, "y")


async def test_a_failed_write_leaves_other_adjustments_written(
    adjustments: FakeApiServer, access: Access
) -> None:
    async def forbid(request: Request, wire: Wire) -> bool:
        if request.method != "PATCH" or not request.path.endswith("/x"):
            return False
        await wire.answer(403, status(403, "Forbidden", "no", name="x"))
        return True

    for name in ("x", "y"):
        adjustments.put(PATH, adjustment(name))
    adjustments.faults.append(forbid)
    async with ApiClient.open(access) as api:
        reporter = AdjustmentReporter(api, NODE)
        with pytest.raises(ApiError):
            await report(api, reporter)
        assert NODE in entries(adjustments, "y")
        assert not await report(api, reporter)

    assert NODE in entries(adjustments, "x")
