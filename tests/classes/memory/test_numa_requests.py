"""What annotations ask for as a NUMA policy."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.memory import (
    NumaPolicy,
    NumaPolicyRequest,
    PolicyMode,
    chosen_numa_policy,
    numa_policy_request,
)
from nri_resmgr.config.memory_classes import parse_numa_policy
from nri_resmgr.values import ResmgrError
from nri_resmgr.values.annotations import Annotation

CLASS = "class.memory-policy.nri.io"
POLICY = "policy.memory-policy.nri.io"
BIND = "{mode: MPOL_BIND, nodes: all}"
TITLE = "default/shop/web"


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [
        pytest.param({}, None, id="nothing asked"),
        pytest.param({CLASS: "near"}, NumaPolicyRequest("near"), id="a class"),
        pytest.param(
            {POLICY: BIND},
            NumaPolicyRequest(policy=Annotation(POLICY, BIND)),
            id="a policy",
        ),
        pytest.param(
            {CLASS: "near", f"{CLASS}/container.web": "far"},
            NumaPolicyRequest("far"),
            id="the container's class counts",
        ),
        pytest.param(
            {POLICY: BIND, f"{CLASS}/container.web": "far"},
            NumaPolicyRequest("far"),
            id="a class of the container against a policy of the pod",
        ),
        pytest.param(
            {CLASS: "near", f"{POLICY}/container.web": BIND},
            NumaPolicyRequest(policy=Annotation(f"{POLICY}/container.web", BIND)),
            id="a policy of the container against a class of the pod",
        ),
        pytest.param(
            {CLASS: "near", f"{CLASS}/pod": "far"},
            NumaPolicyRequest("far"),
            id="the pod in so many words",
        ),
        pytest.param(
            {CLASS: "near", f"{CLASS}/container.db": "far"},
            NumaPolicyRequest("near"),
            id="another container's class",
        ),
        pytest.param(
            {CLASS: "near", f"{CLASS}/container.web": ""}, None, id="no class for us"
        ),
        pytest.param(
            {CLASS: "near", f"{POLICY}/container.web": ""}, None, id="no policy for us"
        ),
        pytest.param(
            {POLICY: BIND, f"{CLASS}/container.web": ""},
            None,
            id="no class for us takes a policy of the pod away, too",
        ),
        pytest.param({CLASS: ""}, None, id="an empty class of the pod"),
    ],
)
def test_annotations_ask_for(
    annotations: dict[str, str], asked: NumaPolicyRequest | None
) -> None:
    assert numa_policy_request(annotations, "web") == asked


@pytest.mark.parametrize("scope", ["", "/pod", "/container.web"])
def test_class_and_policy_of_one_scope_exclude_each_other(scope: str) -> None:
    with pytest.raises(ResmgrError) as error:
        numa_policy_request({POLICY + scope: BIND, CLASS + scope: "near"}, "web")

    assert str(error.value) == (
        f"annotation {CLASS}{scope}: 'near' cannot be combined with "
        f"{POLICY}{scope}: remove one of them"
    )


def test_a_wider_scope_may_have_both() -> None:
    annotations = {POLICY: BIND, CLASS: "near", f"{CLASS}/container.web": "far"}

    assert numa_policy_request(annotations, "web") == NumaPolicyRequest("far")


NEAR = NumaPolicy(PolicyMode.BIND, "cpu-nodes")


def test_a_request_names_a_class_or_spells_out_a_policy() -> None:
    classes = {"near": NEAR}
    by_name, spoken = (
        NumaPolicyRequest("near"),
        NumaPolicyRequest("", Annotation(POLICY, BIND)),
    )

    assert chosen_numa_policy(by_name, classes, parse_numa_policy, TITLE) == NEAR
    expected = NumaPolicy(PolicyMode.BIND, "all")
    assert chosen_numa_policy(spoken, classes, parse_numa_policy, TITLE) == expected


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        pytest.param(
            NumaPolicyRequest("far"),
            f"{TITLE} asks for memory policy class 'far'; known: near; to help, name "
            "one of these, or add the class to the configuration",
            id="a class that is not there",
        ),
        pytest.param(
            NumaPolicyRequest(policy=Annotation(POLICY, "{mode: BIND}")),
            f"annotation {POLICY}: '{{mode: BIND}}' is no memory policy: $.mode: "
            "unknown value, did you mean MPOL_BIND?",
            id="a mode by half of its name",
        ),
        pytest.param(
            NumaPolicyRequest(policy=Annotation(POLICY, "{")),
            f"annotation {POLICY}: '{{' is no memory policy: ",
            id="no YAML",
        ),
        pytest.param(
            NumaPolicyRequest(policy=Annotation(POLICY, "# " + "x" * 5000)),
            "is no memory policy: 5002 characters, expected at most 4096",
            id="a book",
        ),
    ],
)
def test_a_request_that_cannot_be_granted(
    asked: NumaPolicyRequest, complaint: str
) -> None:
    with pytest.raises(ResmgrError) as error:
        chosen_numa_policy(asked, {"near": NEAR}, parse_numa_policy, TITLE)

    assert complaint in str(error.value)
