"""The startup taint is removed once, when the daemon serves; other taints stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from nri_resmgr.agent.api import NODES, Access, ApiClient
from nri_resmgr.agent.choice import Ambiguous, Chosen, ConfigObject, Nothing, Waiting
from nri_resmgr.agent.daemon_state import Daemon, DaemonState, Session
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.startup_taint import (
    BadTaint,
    StartupTaint,
    check_key,
    is_serving,
)
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict
from tests.agent.fake_api_server import FakeApiServer, Request, Wire
from tests.cli.command import nri_resmgr

KEY: Final = "nri-resmgr.io/not-ready"
CONFIG: Final = ConfigObject("StaticPolicy", "nri", "default", "uid-1", 3, "77", "")
NEXT: Final = msgspec.structs.replace(CONFIG, generation=4, text="spec: {}")
SERVING: Final = Facts(
    Chosen(CONFIG),
    CONFIG,
    Verdict(Outcome.ACCEPTED),
    DaemonState(session=Session("synchronized")),
)
OURS: Final = {"key": KEY, "effect": "NoSchedule"}
OTHER: Final = {"key": "example.com/gpu", "value": "yes", "effect": "NoExecute"}


def facts(**changes: Any) -> Facts:
    return msgspec.structs.replace(SERVING, **changes)


@pytest.mark.parametrize(
    ("found", "serves"),
    [
        pytest.param(SERVING, True, id="synchronized"),
        pytest.param(facts(choice=Nothing(())), True, id="no document"),
        pytest.param(facts(verdict=Verdict(Outcome.REJECTED)), True, id="rejected"),
        pytest.param(facts(choice=Waiting()), False, id="no answer of the cluster"),
        pytest.param(facts(verdict=PENDING), False, id="not judged"),
        pytest.param(facts(choice=Chosen(NEXT)), False, id="the one before is judged"),
        pytest.param(facts(config=None), False, id="not handed over"),
        pytest.param(
            facts(choice=Chosen(msgspec.structs.replace(CONFIG, resource_version="8"))),
            True,
            id="only the status was changed",
        ),
        pytest.param(facts(choice=Ambiguous((CONFIG, NEXT))), True, id="several"),
        pytest.param(facts(state=None), False, id="no daemon"),
        pytest.param(
            facts(state=DaemonState(session=Session("registered"))),
            False,
            id="not synchronized",
        ),
        pytest.param(
            facts(state=DaemonState(Daemon("", True), session=Session("synchronized"))),
            False,
            id="dry run",
        ),
    ],
)
def test_a_node_serves_once_its_document_is_judged(
    found: Facts, *, serves: bool
) -> None:
    assert is_serving(found) is serves


@pytest.mark.parametrize("key", ["", KEY, "not-ready", "a.b-c.io/X_1.y"])
def test_a_key_is_a_qualified_name(key: str) -> None:
    assert check_key("--startup-taint", key) == key


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("nri-resmgr.io/not-ready:NoSchedule", "expected the key of a taint"),
        ("a/b/c", "expected the key of a taint"),
        ("/not-ready", "expected the key of a taint"),
        ("not ready", "expected the key of a taint"),
        ("node.kubernetes.io/not-ready", "outside of kubernetes.io"),
        ("kubernetes.io/x", "outside of kubernetes.io"),
    ],
)
def test_keys_of_kubernetes_and_other_text_are_refused(key: str, why: str) -> None:
    with pytest.raises(BadTaint, match=why) as refusal:
        check_key("--startup-taint", key)

    assert str(refusal.value).startswith("--startup-taint: ")


@pytest.mark.process
def test_an_agent_with_a_key_of_kubernetes_does_not_look_for_the_cluster(
    tmp_path: Path,
) -> None:
    key, nowhere = "node.kubernetes.io/not-ready", tmp_path / "none"
    words = ("--kubeconfig", str(nowhere), "--startup-taint", key)
    done = nri_resmgr("agent", *words)

    sentence = f"--startup-taint: expected a key outside of kubernetes.io, not {key!r}"
    assert (done.returncode, done.stderr) == (2, f"nri-resmgr: {sentence}\n")


def put_node(server: FakeApiServer, *taints: dict[str, str]) -> str:
    """Make the Node, or make it anew; return its UID."""
    if ("/nodes", "", "node-a") in server.objects:
        server.remove(NODES.path(), "node-a")
    spec = {"podCIDR": "10.0.0.0/24", **({"taints": [*taints]} if taints else {})}
    made = server.put(NODES.path(), {"metadata": {"name": "node-a"}, "spec": spec})
    return str(made["metadata"]["uid"])


def spec_of(server: FakeApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.objects["/nodes", "", "node-a"]["spec"]
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([OURS], None),
        ([OTHER, OURS], [OTHER]),
        # The same key with another effect is another taint of the same purpose.
        ([OURS, OTHER, OURS | {"effect": "NoExecute"}], [OTHER]),
        ([OTHER], [OTHER]),
        ([], None),
    ],
)
async def test_only_taints_of_the_key_are_removed(
    server: FakeApiServer,
    access: Access,
    before: list[dict[str, str]],
    after: list[dict[str, str]] | None,
) -> None:
    uid = put_node(server, *before)
    async with ApiClient.open(access) as api:
        taint = StartupTaint(api, "node-a", KEY)
        assert await taint.write(SERVING, uid) == 0
        asked = len(server.requests)
        assert await taint.write(SERVING, uid) == 0

    assert spec_of(server).get("taints") == after
    assert spec_of(server)["podCIDR"] == "10.0.0.0/24"
    assert len(server.requests) == asked  # once for each Node


async def test_the_taint_stays_until_the_node_serves_and_is_known(
    server: FakeApiServer, access: Access
) -> None:
    uid = put_node(server, OURS)
    async with ApiClient.open(access) as api:
        taint = StartupTaint(api, "node-a", KEY)
        assert await taint.write(facts(verdict=PENDING), uid) == 0
        assert await taint.write(SERVING, "") == 0
        assert spec_of(server)["taints"] == [OURS]
        assert server.requests == []

        await taint.write(SERVING, uid)
        assert "taints" not in spec_of(server)

        # A Node that is made anew has it again.
        await taint.write(SERVING, put_node(server, OURS))
    assert "taints" not in spec_of(server)


async def test_a_taint_that_comes_between_is_not_lost(
    server: FakeApiServer, access: Access
) -> None:
    uid = put_node(server, OURS)

    async def meddle(request: Request, wire: Wire) -> bool:
        if request.method == "PATCH" and OTHER not in spec_of(server)["taints"]:
            node = server.objects["/nodes", "", "node-a"]
            server.put(NODES.path(), {**node, "spec": {"taints": [OURS, OTHER]}})
        return False

    server.faults.append(meddle)
    async with ApiClient.open(access) as api:
        taint = StartupTaint(api, "node-a", KEY)
        assert await taint.write(SERVING, uid) > 0
        assert spec_of(server)["taints"] == [OURS, OTHER]
        assert await taint.write(SERVING, uid) == 0

    assert spec_of(server)["taints"] == [OTHER]


async def test_a_node_that_is_gone_is_waited_for(
    server: FakeApiServer, access: Access
) -> None:
    async with ApiClient.open(access) as api:
        taint = StartupTaint(api, "node-a", KEY)
        assert await taint.write(SERVING, "uid-1") == 0
        # The next one has the taint again.
        await taint.write(SERVING, put_node(server, OURS))

    assert "taints" not in spec_of(server)
