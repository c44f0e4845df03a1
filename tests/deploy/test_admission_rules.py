"""The admission policy lets an agent change just what it has to of a Node.

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


def refusals(before: Json, after: Json, subresource: str, node: str) -> list[str]:
    """Return what the API server says to an agent of *node* that changes a Node."""
    resource = {"group": "", "version": "v1", "resource": "nodes"}
    extra = {"authentication.kubernetes.io/node-name": [node]}
    request: Json = {
        "operation": "UPDATE",
        "resource": resource,
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
