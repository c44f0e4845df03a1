"""What the control socket answers, over a real socket, and that the schema says so."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from nri_proto import nri_pb2
from nri_resmgr.app.configuration.status import DocumentSource, Rejection
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.control.client import QueryRefused
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.http import HttpRequest
from nri_resmgr.control.routes import SCHEMA, routes_of
from nri_resmgr.host.kubelet import KubeletManager
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import RULE_SENTENCES
from nri_resmgr.stub import RuntimeInfo
from nri_resmgr.topology.document import from_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.control.daemon_parts import STATUS, Parts, ask, asking, make_parts
from tests.control.json_schema import DOCUMENT, mistakes

BALLOONS = """\
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  balloonTypes: [{name: fast, namespaces: [shop], minCPUs: 2}]
"""
STATIC = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {reservedResources: {cpu: 1}}
"""
RESERVED = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec: {reservedResources: {cpu: "cpuset:0"}}
"""
POOLS = {
    "StaticPlusPolicy": "{reservedResources: {cpu: 1}}",
    "StaticPoolsPolicy": "{pools: [{name: infra, cpuLists: [{cpus: 0}]}]}",
    "PodpoolsPolicy": "{pools: [{name: two, cpu: 2}]}",
    "DynamicPoolsPolicy": "{pools: [{name: shop, namespaces: [shop]}]}",
}
DOCUMENTS = {
    "TopologyAwarePolicy": "",
    "BalloonsPolicy": BALLOONS,
    "StaticPolicy": STATIC,
    **{
        kind: f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
        for kind, spec in POOLS.items()
    },
}
OWN = {
    "id": "id-web",
    "namespace": "shop",
    "pod": "web",
    "podUid": "uid-web",
    "name": "main",
    "qos": "Guaranteed",
    "pool": "NUMA node #1",
    "cpus": "4-5",
    "exclusive": "4-5",
    "mems": "1",
    "request": {
        "cpu": 2000,
        "cpuLimit": 2000,
        "memory": 1 << 30,
        "memoryLimit": 1 << 30,
        "hugepages": [],
        "extended": {},
        "ofPod": False,
    },
    "source": "oci",
    "adjustment": "",
    "ownSource": "oci",
    "priority": None,
    "accuracy": "estimated",
    "created": "",
    "started": "",
    "delivery": {
        "by": "runtime",
        "why": "",
        "recorded": {"cpus": "4-5", "mems": "1"},
        "waitingSeconds": 0.0,
        "waitsFor": "",
    },
    "verification": None,
}


def at_work(document: str = "") -> Parts:
    """Make a node with an exclusive, a mixed, a shared, a refused and a gone one."""
    parts = make_parts(document=document)
    parts.run("own", 2)
    parts.run("mixed", 1.5)
    parts.run("shared", 0.5)
    parts.run("huge", 64)
    parts.run("gone", 1)
    parts.stop("gone")
    return parts


async def test_the_state_of_a_node(tmp_path: Path) -> None:
    parts = make_parts()
    parts.run("web", 2)
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")

    assert state["policy"] == "TopologyAwarePolicy"
    assert state["cpus"] == {
        "online": "0-7",
        "offline": "",
        "exclusive": "4-5",
        "shared": "",
        "reserved": "0",
        "isolated": "",
        "idle": "1-3,6-7",
    }
    memory = {"capacity": 16 << 30, "granted": 1 << 30, "free": 15 << 30}
    assert state["nodes"][1] == {
        "id": 1,
        "kind": "dram",
        "cpus": "4-7",
        "memory": memory,
    }
    assert state["containers"] == [OWN]


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
async def test_every_answer_is_valid_by_the_schema(
    document: str, tmp_path: Path
) -> None:
    parts = at_work(document)
    async with asking(parts, tmp_path) as client:
        answers = [
            await ask(client, path)
            for path in (
                *("/v1/state", "/v1/zones", "/v1/topology", "/v1/host", "/v1/log"),
            )
        ]
        pods = ("own", "mixed", "shared", "gone", "huge")
        answers += [await ask(client, "/v1/explain", pod=pod) for pod in pods]
        answers.append(await asyncio.to_thread(client.post, "/v1/reload"))
        lines = await asyncio.to_thread(lambda: list(client.lines("/v1/events")))

    named = [(one["kind"], mistakes(one, one["kind"])) for one in answers]
    assert [pair for pair in named if pair[1]] == []
    assert [mistakes(lines[0], "EventList")] == [[]]
    assert [found for one in lines[1:] if (found := mistakes(one, "event"))] == []


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
async def test_decisions_name_the_pool_that_status_shows(
    document: str, tmp_path: Path
) -> None:
    parts = at_work(document)
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")
        shown = {one["pod"]: one["pool"] for one in state["containers"]}
        explained = {one: await ask(client, "/v1/explain", pod=one) for one in shown}

    decided = {
        pod: one["placement"]["pool"]
        for pod, found in explained.items()
        for one in found["containers"]
    }
    assert shown == decided
    assert all(shown.values())


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_every_kind_explains_each_container(document: str) -> None:
    parts = at_work(document)
    specs = parts.policy.state.ledger.entries
    pins = parts.policy.policy.pins(parts.policy.state)
    assert {"id-own", "id-mixed", "id-shared"} <= specs.keys()

    for key in specs:
        answer = explanation_of(parts.daemon, key.removeprefix("id-"), "")
        (found,) = answer["containers"]
        placement = found["placement"]
        assert found["container"]["cpus"] == str(pins[key].cpus) != ""
        assert CpuSet.parse(placement["cpus"]) & pins[key].cpus
        assert placement["sentences"][0] == RULE_SENTENCES[Rule(placement["rule"])]
        lines = render_explanation(answer).splitlines()
        assert lines[0] == f"shop/{key.removeprefix('id-')}/main"
        for words in (f"CPUs {pins[key].cpus}", placement["sentences"][0]):
            assert any(words in line for line in lines)


def test_the_stories_have_documents_of_all_kinds() -> None:
    # `test_none_policy` has those of the policy that pins nothing.
    assert {*DOCUMENTS, "NonePolicy"} == set(BUILT_IN)


async def test_every_online_cpu_is_of_one_class(tmp_path: Path) -> None:
    for document in DOCUMENTS.values():
        parts = at_work(document)
        async with asking(parts, tmp_path) as client:
            cpus = (await ask(client, "/v1/state"))["cpus"]
        words = ("exclusive", "shared", "reserved", "isolated", "idle")
        classes = [CpuSet.parse(cpus[word]) for word in words]

        assert sum(map(len, classes)) == len(CpuSet.union(classes)) == 8


async def test_isolated_cpus_are_listed_as_such_until_granted(tmp_path: Path) -> None:
    parts = make_parts("1s2n4c1t isolated=0,6-7", RESERVED)
    async with asking(parts, tmp_path) as client:
        before = (await ask(client, "/v1/state"))["cpus"]
        parts.run("web", 1)
        after = (await ask(client, "/v1/state"))["cpus"]

    words = ("exclusive", "reserved", "isolated")
    assert [before[word] for word in words] == ["", "0", "6-7"]
    assert [after[word] for word in words] == ["6", "0", "7"]


async def test_secrets_of_pods_are_in_no_answer(tmp_path: Path) -> None:
    parts = at_work()
    async with asking(parts, tmp_path) as client:
        answers: list[Any] = [await ask(client, "/v1/state")]
        answers.append(await ask(client, "/v1/explain", pod="own"))
        answers += await asyncio.to_thread(lambda: list(client.lines("/v1/events")))

    assert "hunter2" not in json.dumps(answers)


async def test_the_topology_is_a_machine_document(tmp_path: Path) -> None:
    async with asking(make_parts("2s2n4c2t"), tmp_path) as client:
        answer = await ask(client, "/v1/topology")

    assert from_document(answer["machine"]) == parse_spec("2s2n4c2t")


async def test_a_timeout_that_the_runtime_does_not_report_is_null(
    tmp_path: Path,
) -> None:
    reported = nri_pb2.ConfigureRequest(
        runtime_name="containerd",
        runtime_version="2.1.0",
        registration_timeout=5_000,
        request_timeout=2_000,
    )
    # As NRI before 0.7; its own setting may be another one.
    silent = nri_pb2.ConfigureRequest(
        runtime_name="containerd", runtime_version="1.7.20"
    )
    found = []
    for request in (reported, silent):
        info = RuntimeInfo.of(request)
        parts = make_parts(runtime=lambda info=info: info)
        async with asking(parts, tmp_path) as client:
            state = await ask(client, "/v1/state")
        assert mistakes(state, "State") == []
        found.append(state["runtime"]["requestTimeoutSeconds"])

    assert found == [2.0, None]


async def test_a_refused_configuration_is_reported(tmp_path: Path) -> None:
    error = Rejection(DocumentSource.FILE, "/etc/x.yaml", "$.spec: no", 1_700_000_060.0)
    status = type(STATUS)(
        source=DocumentSource.FILE,
        name="/etc/x.yaml",
        cached=False,
        kind="StaticPolicy",
        text="kind: StaticPolicy\n",
        accepted=1_700_000_000.5,
        generation=3,
        ineffective=("$.spec.x",),
        rejected=2,
        error=error,
    )
    async with asking(make_parts(configuration=lambda: status), tmp_path) as client:
        state = await ask(client, "/v1/state")

    assert mistakes(state, "State") == []
    assert state["configuration"] == {
        "source": "file",
        "name": "/etc/x.yaml",
        "cached": False,
        "kind": "StaticPolicy",
        "sha256": hashlib.sha256(b"kind: StaticPolicy\n").hexdigest(),
        "accepted": "2023-11-14T22:13:20.500Z",
        "generation": 3,
        "ineffective": ["$.spec.x"],
        "leftOut": [],
        "rejected": 2,
        "error": {
            "source": "file",
            "name": "/etc/x.yaml",
            "why": "$.spec: no",
            "when": "2023-11-14T22:14:20.000Z",
        },
    }


async def test_a_kubelet_that_pins_as_well_is_reported(tmp_path: Path) -> None:
    manager = KubeletManager("cpu", "static", "/state")
    async with asking(make_parts(kubelet=lambda: (manager,)), tmp_path) as client:
        state = await ask(client, "/v1/state")

    reported = {"manager": "cpu", "policy": "static", "why": str(manager)}
    assert (state["kubelet"], mistakes(state, "State")) == ([reported], [])


async def test_log_levels_are_set_one_by_one(tmp_path: Path) -> None:
    async with asking(make_parts(), tmp_path) as client:
        rule = {"pattern": "stub.*", "level": "error"}
        answer = await asyncio.to_thread(client.put, "/v1/log", rule)

    assert answer["levels"]["rules"] == {"*": "debug", "stub.*": "error"}
    assert mistakes(answer, "LogLevels") == []


async def test_a_reload_is_answered_when_it_is_done(tmp_path: Path) -> None:
    parts = make_parts()
    async with asking(parts, tmp_path) as client:
        answer = await asyncio.to_thread(client.post, "/v1/reload")

    assert answer == {
        "apiVersion": "control.nri/v1",
        "kind": "Reloaded",
        "generation": 1,
        "pendingUpdates": {"count": 0, "oldestSeconds": 0.0},
    }
    assert mistakes(answer, "Reloaded") == []
    assert parts.reloads == [False]


async def test_a_reload_can_be_forced(tmp_path: Path) -> None:
    parts = make_parts()
    async with asking(parts, tmp_path) as client:
        await asyncio.to_thread(client.post, "/v1/reload", force="1")
        await asyncio.to_thread(client.post, "/v1/reload", force="0")

    assert parts.reloads == [True, False]


async def test_a_rebalance_lists_the_moved_containers(tmp_path: Path) -> None:
    parts = make_parts("1s4n4c1t")
    parts.daemon.sessions.synchronized()
    large = ("x", "y", "z")
    for name in large:
        parts.run(name, 4)
    for name in ("a", "b"):
        parts.run(name, 0.5)
    for name in large:
        parts.stop(name)
    async with asking(parts, tmp_path) as client:
        dry_run = {"dry-run": "1"}
        tried = await asyncio.to_thread(client.post, "/v1/rebalance", **dry_run)
        answer = await asyncio.to_thread(client.post, "/v1/rebalance")

    assert mistakes(answer, "Rebalanced") == mistakes(tried, "Rebalanced") == []
    assert (tried["dryRun"], answer["dryRun"]) == (True, False)
    assert tried["containers"] == answer["containers"] != []


async def test_a_rebalance_is_refused_before_the_first_synchronization(
    tmp_path: Path,
) -> None:
    async with asking(make_parts(), tmp_path) as client:
        with pytest.raises(QueryRefused, match="no runtime is synchronized"):
            await asyncio.to_thread(client.post, "/v1/rebalance")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/v1/explain", "expected ?pod=NAME, and optionally &container=NAME"),
        ("/v1/explain?pod=x", "no running or recently removed container matches 'x'"),
        ("/v1/explain?pid=x", "unknown parameter 'pid'; known: pod, container"),
        ("/v1/events?since=-1", "since=-1: expected the number of an event"),
        ("/v1/events?follow=yes", "follow=yes: expected 0 or 1"),
        ("/v2/state", "no such path: /v2/state"),
    ],
)
async def test_a_wrong_query_is_refused_with_a_sentence(
    path: str, why: str, tmp_path: Path
) -> None:
    async with asking(make_parts(), tmp_path) as client:
        with pytest.raises(QueryRefused) as raised:
            await ask(client, path)

    assert raised.value.why == why


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"\xff", b"[" * 4000, b'{"pattern": "x"}'),
        b'{"pattern": 1, "level": "debug"}',
        b'{"pattern": "x", "level": "debug", "more": 1}',
    ],
)
async def test_an_invalid_log_level_changes_nothing(body: bytes) -> None:
    parts = make_parts()
    before = parts.daemon.levels.as_data()
    put: Any = routes_of(parts.daemon)["PUT", "/v1/log"]
    with pytest.raises(Exception, match=r"JSON|expected"):
        put(HttpRequest("PUT", "/v1/log", body=body))

    assert parts.daemon.levels.as_data() == before


def test_the_schema_is_served_and_is_whole() -> None:
    text = json.dumps(DOCUMENT)
    names = {one.partition('"')[0] for one in text.split("#/$defs/")[1:]}

    assert names <= DOCUMENT["$defs"].keys()
    reply: Any = routes_of(make_parts().daemon)["GET", "/v1/schema"]
    assert reply(HttpRequest("GET", "/v1/schema")).body == SCHEMA.read_bytes()


async def test_the_end_of_a_fallback_is_explained_by_the_container_that_stopped(
    tmp_path: Path,
) -> None:
    parts = make_parts(
        "1s1n4c1t", STATIC.replace("spec: {", "spec: {onFailure: shared, ")
    )
    parts.run("first", 3)
    parts.run("next", 2)
    parts.stop("first")
    async with asking(parts, tmp_path) as client:
        answer = await ask(client, "/v1/explain", pod="next")

    assert mistakes(answer, answer["kind"]) == []
    last = answer["containers"][0]["history"][-1]
    assert (last["kind"], last["rule"]) == ("container.now-fits", "now-fits")
    assert last["cpus"] == "1-2"
    assert last["sentence"].endswith("now there is room, because of shop/first/main")
