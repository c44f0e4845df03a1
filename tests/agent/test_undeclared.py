"""Fields that a server's definition lacks are left out of what is applied."""

from __future__ import annotations

import json

import pytest

from nri_resmgr.agent.api import NODES, Access, ApiClient, ApiError, Ref
from nri_resmgr.agent.api.undeclared import UndeclaredFields
from tests.agent.fake_api_server import (
    FakeApiServer,
    Fault,
    Json,
    Request,
    Wire,
    status,
)

# As of Kubernetes 1.20, and with several fields.
ONE = "failed to create typed patch object: .status.cpus: field not declared in schema"
TWO = (
    "failed to create typed patch object (/a; v1, Kind=B): errors: .status.mode: field "
    "not declared in schema .status.at.more: field not declared in schema"
)
ITEM = '.status.rows[name="a"].more: field not declared in schema'
BODY: Json = {"status": {"cpus": {"idle": 1}, "mode": "x", "at": {"more": 1, "b": 2}}}


@pytest.mark.parametrize(
    ("why", "found", "left"),
    [
        (ONE, {"status.cpus"}, {"mode": "x", "at": {"more": 1, "b": 2}}),
        (
            TWO,
            {"status.mode", "status.at.more"},
            {"cpus": {"idle": 1}, "at": {"b": 2}},
        ),
        (ITEM, set(), BODY["status"]),
        ("the object was changed", set(), BODY["status"]),
        (".status.none.more: field not declared in schema", None, BODY["status"]),
        (".status.mode.more: field not declared in schema", None, BODY["status"]),
    ],
)
def test_named_fields_are_left_out(
    why: str, found: set[str] | None, left: Json
) -> None:
    undeclared = UndeclaredFields()
    before = json.dumps(BODY)

    noted = undeclared.note(why, 0.0)

    assert found is None or noted == found
    assert undeclared.without(BODY, 1.0) == {"status": left}
    assert undeclared.note(why, 1.0) == set()  # once
    assert json.dumps(BODY) == before


def test_after_a_while_the_whole_object_is_tried_again() -> None:
    undeclared = UndeclaredFields()
    undeclared.note(ONE, 100.0)

    assert undeclared.without(BODY, 699.0) != BODY
    assert undeclared.without(BODY, 700.0) == BODY
    assert undeclared.note(ONE, 700.0) == {"status.cpus"}


@pytest.mark.parametrize("code", [400, 500])
async def test_an_object_is_applied_without_what_the_server_does_not_declare(
    code: int, server: FakeApiServer, access: Access
) -> None:
    async def refuse(request: Request, wire: Wire) -> bool:
        sent = json.loads(request.body).get("status", {}) if request.body else {}
        if "cpus" not in sent:
            return False
        await wire.answer(code, status(code, "", ONE))
        return True

    server.faults += [refuse, refuse]
    server.put("/api/v1/nodes", {"metadata": {"name": "a"}})
    ref = Ref(NODES, "a")
    async with ApiClient.open(access) as api:
        await api.apply(ref, BODY)
        await api.apply(ref, BODY)  # at once without it
        lacking = api.left_out
        written = [json.loads(one.body)["status"] for one in server.requests]
        # Another reason is none to leave anything out.
        server.faults[:] = [always(code)]
        with pytest.raises(ApiError, match="no such luck"):
            await api.apply(ref, BODY)

    assert lacking == "nodes status.cpus"
    assert ["cpus" in one for one in written] == [True, False, False]
    assert server.objects["/nodes", "", "a"]["status"]["mode"] == "x"


def always(code: int) -> Fault:
    async def refuse(_: Request, wire: Wire) -> bool:
        await wire.answer(code, status(code, "", "no such luck"))
        return True

    return refuse
