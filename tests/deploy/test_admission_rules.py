"""The admission policy lets an agent change just what belongs to its node.

Evaluated by Google's C++ implementation of CEL, as the policy of requests is: by the
extra ``cel``.
"""

from __future__ import annotations

import copy
from typing import Any, Final, TypeAlias

import pytest
import yaml

from tests.deploy.kubectl import MANIFESTS

pytest.importorskip("cel_expr_python", reason="needs the extra cel")

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional

Json: TypeAlias = dict[str, Any]

POLICY: Final = MANIFESTS / "options/admission-policy/policy.yaml"
SPEC: Final[Json] = next(yaml.safe_load_all(POLICY.read_text()))["spec"]
OURS: Final = {"key": "nri-resmgr.io/not-ready", "effect": "NoSchedule"}
OTHER: Final = {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}
NODE: Final[Json] = {
    "metadata": {"name": "node-a", "labels": {"pool": "fast"}},
    "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [OURS, OTHER]},
    "status": {"capacity": {"cpu": "8"}, "conditions": [{"type": "Ready"}]},
}
STATUS: Final = "status"
DOCUMENTS: Final = ("config.nri", "staticpolicies")
REPORTS: Final = ("config.nri", "noderesourcemanagers")
ADJUSTMENTS: Final = ("criresmgr.intel.com", "adjustments")
TOPOLOGIES: Final = ("topology.node.k8s.io", "noderesourcetopologies")
SLICES: Final = ("resource.k8s.io", "resourceslices")
EVENTS: Final = ("events.k8s.io", "events")


def _environment() -> Any:
    dyn = cel.Type.DYN
    return cel.NewEnv(
        variables={
            **dict.fromkeys(("request", "object", "oldObject"), dyn),
            "variables": cel.Type.Map(cel.Type.STRING, dyn),
        },
        extensions=[ext_optional.ExtOptional()],
    )


def _programs(rows: list[Json], key: str) -> list[Any]:
    environment = _environment()
    return [environment.compile(one[key]) if key in one else None for one in rows]


VARIABLES: Final = dict(
    zip(
        [one["name"] for one in SPEC["variables"]],
        _programs(SPEC["variables"], "expression"),
        strict=True,
    )
)
RULES: Final = tuple(
    zip(
        _programs(SPEC["validations"], "expression"),
        _programs(SPEC["validations"], "messageExpression"),
        strict=True,
    )
)


def refusals(
    before: Json | None,
    after: Json | None,
    subresource: str,
    node: str,
    resource: tuple[str, str] = ("", "nodes"),
) -> list[str]:
    """Return what the API server says to an agent of *node* that changes an object.

    Args:
        before: The object; None if it is created.
        after: The same; None if it is deleted.
        subresource: Which part of it is written; empty for the whole.
        node: The agent's.
        resource: Group and plural of the object.
    """
    group, plural = resource
    extra = {"authentication.kubernetes.io/node-name": [node]} if node else {}
    operation = "UPDATE" if before and after else "CREATE" if after else "DELETE"
    request: Json = {
        "operation": operation,
        "resource": {"group": group, "version": "v1", "resource": plural},
        "userInfo": {"extra": extra},
    }
    if subresource:
        request["subResource"] = subresource
    variables: Json = {}
    data: Json = {"request": request, "object": after, "oldObject": before}
    data["variables"] = variables
    for name, program in VARIABLES.items():
        variables[name] = program.eval(data=data).plain_value()
    return [
        message.eval(data=data).plain_value() if message else "refused"
        for rule, message in RULES
        if rule.eval(data=data).plain_value() is not True
    ]


def changed(*path: str, to: object) -> Json:
    """Return the Node with another value at a path."""
    node = copy.deepcopy(NODE)
    place = node
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return node


TAINT_ONLY: Final = "may remove only the startup taint of its node"


@pytest.mark.parametrize(
    ("after", "subresource", "why"),
    [
        pytest.param(changed("spec", "taints", to=[OTHER]), "", "", id="taint gone"),
        pytest.param(NODE, "", "", id="nothing"),
        pytest.param(
            changed("spec", "taints", to=[OURS]), "", TAINT_ONLY, id="another taint"
        ),
        pytest.param(changed("spec", "taints", to=[]), "", TAINT_ONLY, id="all taints"),
        pytest.param(
            changed("spec", "taints", to=[OTHER, OURS | {"effect": "NoExecute"}]),
            "",
            TAINT_ONLY,
            id="another effect",
        ),
        *(
            pytest.param(changed(*path, to=value), "", TAINT_ONLY, id=".".join(path))
            for path, value in (
                (("metadata", "labels"), {"pool": "slow"}),
                (("metadata", "annotations"), {"a": "b"}),
                (("metadata", "finalizers"), ["a.io/b"]),
                (("metadata", "ownerReferences"), [{"kind": "Pod", "name": "gone"}]),
                (("spec", "unschedulable"), True),
                (("spec", "providerID"), "other://1"),
                (("spec", "podCIDRs"), []),
            )
        ),
        pytest.param(
            changed("status", "capacity", to={"cpu": "8", "a.io/b": "3"}),
            STATUS,
            "",
            id="an extended resource",
        ),
        pytest.param(
            changed("status", "conditions", to=[]),
            STATUS,
            "may write only extended resources",
            id="conditions",
        ),
    ],
)
def test_an_agent_changes_only_its_part_of_its_node(
    after: Json, subresource: str, why: str
) -> None:
    refused = refusals(NODE, after, subresource, "node-a")

    assert [why in one for one in refused] == ([True] if why else [])


def test_an_agent_changes_no_other_node() -> None:
    after = changed("spec", "taints", to=[OTHER])

    (why,) = refusals(NODE, after, "", "node-b")
    assert why.startswith("the agent of node node-b may write only ")


def test_a_node_without_taints_stays_without() -> None:
    bare = changed("spec", to={"podCIDRs": ["10.0.0.0/24"]})
    again = copy.deepcopy(bare)
    again["spec"]["taints"] = [OURS]

    assert refusals(bare, bare, "", "node-a") == []
    (why,) = refusals(bare, again, "", "node-a")
    assert TAINT_ONLY in why


def shared(*nodes: str, name: str = "default", word: str = "old", **more: Any) -> Json:
    """Return an object with entries of nodes."""
    entries = {node: {"status": word} for node in nodes}
    status = {"nodes": entries, **more}
    return {"metadata": {"name": name}, "spec": {"scope": []}, "status": status}


OTHERS_ENTRY: Final = "may not write the entry of another node"
ENTRY_ONLY: Final = "may write only its entry in this object"
OLD: Final = shared("node-a", "node-b")


def with_entry(node: str, word: str) -> Json:
    """Return the shared object with another entry of a node."""
    found = copy.deepcopy(OLD)
    found["status"]["nodes"][node] = {"status": word}
    return found


@pytest.mark.parametrize("resource", [DOCUMENTS, ADJUSTMENTS], ids=lambda one: one[1])
@pytest.mark.parametrize(
    ("after", "why"),
    [
        pytest.param(with_entry("node-a", "new"), "", id="its own"),
        pytest.param(shared("node-b"), "", id="its own, removed"),
        pytest.param(with_entry("node-b", "new"), OTHERS_ENTRY, id="another's"),
        pytest.param(shared("node-a"), OTHERS_ENTRY, id="another's, removed"),
        pytest.param(with_entry("node-c", "new"), OTHERS_ENTRY, id="another's, new"),
        pytest.param(
            shared("node-a", "node-b", observedGeneration=2), ENTRY_ONLY, id="the rest"
        ),
        pytest.param(
            shared("node-a", "node-b", conditions=[{"type": "Ready"}]),
            ENTRY_ONLY,
            id="conditions",
        ),
    ],
)
def test_an_agent_writes_its_own_entry_only(
    resource: tuple[str, str], after: Json, why: str
) -> None:
    part = STATUS if resource == DOCUMENTS else ""

    refused = refusals(OLD, after, part, "node-a", resource)

    assert [why in one for one in refused] == ([True] if why else [])


def test_a_first_entry_is_added_beside_none() -> None:
    bare = {"metadata": {"name": "default"}, "spec": {"scope": []}}

    for resource in (DOCUMENTS, ADJUSTMENTS):
        assert refusals(bare, shared("node-a"), "", "node-a", resource) == []
        assert refusals(bare, shared("node-a"), "", "node-b", resource) != []


def test_an_object_of_one_node_has_conditions_by_its_agent_only() -> None:
    name, ready = "node.node-a", [{"type": "Ready"}]
    before, after = shared(name=name), shared("node-a", name=name, conditions=ready)

    assert refusals(before, after, STATUS, "node-a", DOCUMENTS) == []
    assert refusals(before, after, STATUS, "node-b", DOCUMENTS) != []


def test_the_specification_of_an_adjustment_is_not_the_agents() -> None:
    after = {**OLD, "spec": {"scope": [{"nodes": ["*"]}]}}

    assert refusals(OLD, after, "", "node-a", ADJUSTMENTS) == ["refused"]


@pytest.mark.parametrize("resource", [REPORTS, TOPOLOGIES], ids=lambda one: one[1])
def test_the_object_of_a_node_is_its_agents(resource: tuple[str, str]) -> None:
    mine: Json = {"metadata": {"name": "node-a"}}

    for before, after in ((None, mine), (mine, mine), (mine, None)):
        assert refusals(before, after, "", "node-a", resource) == []
        (why,) = refusals(before, after, "", "node-b", resource)
        assert "may not write the status of another node" in why


def test_devices_and_events_are_of_the_agents_node() -> None:
    spec = {"nodeName": "node-a", "driver": "cpu.resmgr.nri.io"}
    devices: Json = {"metadata": {"name": "x"}, "spec": spec}
    foreign = {**devices, "spec": {**spec, "driver": "gpu.example.com"}}
    event: Json = {
        "metadata": {"name": "x"},
        "related": {"kind": "Node", "name": "node-a"},
    }

    assert refusals(None, devices, "", "node-a", SLICES) == []
    assert refusals(devices, None, "", "node-a", SLICES) == []
    assert refusals(None, event, "", "node-a", EVENTS) == []
    for body, resource, node in (
        (devices, SLICES, "node-b"),
        (foreign, SLICES, "node-a"),
        (event, EVENTS, "node-b"),
        ({"metadata": {"name": "x"}}, EVENTS, "node-a"),
    ):
        assert len(refusals(None, body, "", node, resource)) == 1


def test_a_token_that_names_no_node_may_nothing() -> None:
    mine: Json = {"metadata": {"name": ""}}

    assert "refused" in refusals(None, mine, "", "", REPORTS)
