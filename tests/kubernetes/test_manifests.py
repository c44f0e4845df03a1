"""The API server takes our objects, and gives the agent the rights that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.deploy.helm import Release
from tests.deploy.kubectl import MANIFESTS, rendered
from tests.kubernetes.accounts import Account
from tests.kubernetes.control_plane import ControlPlane

NAMESPACE: Final = "kube-system"
ADMISSION: Final = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
FIRST_WITH_ADMISSION: Final = (1, 30)
CONFIG: Final = tuple(
    f"{name}policies"
    for name in (
        *("balloons", "dynamicpools", "none", "podpools", "static", "staticplus"),
        *("staticpools", "topologyaware"),
    )
)
READ: Final = ("get", "list", "watch")
VERBS: Final = (*READ, "create", "update", "patch", "delete", "deletecollection")
# All that the agent may do: group, resource, subresource, verbs, in which namespace.
RIGHTS: Final[set[tuple[str, str, str, str, str]]] = {
    *(("", "nodes", "", verb, "") for verb in READ),
    *(
        ("config.nri", "noderesourcemanagers", "", verb, "")
        for verb in ("get", "create", "patch")
    ),
    ("config.nri", "noderesourcemanagers", "status", "patch", ""),
    *(
        ("topology.node.k8s.io", "noderesourcetopologies", "", verb, "")
        for verb in ("get", "create", "patch", "delete")
    ),
    *(
        ("events.k8s.io", "events", "", verb, namespace)
        for verb in ("create", "patch")
        for namespace in ("", NAMESPACE, "default")
    ),
    *(("config.nri", name, "", verb, NAMESPACE) for name in CONFIG for verb in READ),
    *(("config.nri", name, "status", "patch", NAMESPACE) for name in CONFIG),
    *(
        ("criresmgr.intel.com", "adjustments", "", verb, NAMESPACE)
        for verb in (*READ, "patch")
    ),
}
# What the agent must not do, beside everything else about its own kinds.
OTHERS: Final = (
    *(("", name, "") for name in ("pods", "secrets", "configmaps", "namespaces")),
    *(("", "pods", name) for name in ("exec", "status", "log", "eviction")),
    ("", "nodes", "status"),
    ("", "serviceaccounts", "token"),
    ("apps", "daemonsets", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("rbac.authorization.k8s.io", "clusterroles", ""),
)


def lost(found: Any, wanted: Any, path: str = "$") -> Iterator[str]:
    """Return where the API server has something else than what is *wanted*."""
    match found, wanted:
        case dict(), dict():
            for key, one in wanted.items():
                # An empty list or map, false and 0 may be left out.
                if key in found or one not in ([], {}, None, 0):
                    yield from lost(found.get(key), one, f"{path}.{key}")
        case list(), list() if len(found) == len(wanted):
            for number, (have, one) in enumerate(zip(found, wanted, strict=True)):
                yield from lost(have, one, f"{path}[{number}]")
        case _ if found != wanted:
            yield path


def known(control_plane: ControlPlane) -> tuple[str, ...]:
    return (ADMISSION,) if control_plane.release >= FIRST_WITH_ADMISSION else ()


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster without our DaemonSet, whose selector cannot be changed."""
    yield control_plane
    control_plane.kubectl.within(NAMESPACE)("delete", "daemonset", "nri-resmgr")


@pytest.fixture
def installed(cluster: ControlPlane) -> tuple[dict[str, Any], ...]:
    """The chart's objects, applied to the cluster."""
    objects = Release(kinds=known(cluster)).render()
    cluster.kubectl.apply(*objects, server_side=True)
    return objects


@pytest.mark.parametrize("source", ["chart", "kustomization"])
def test_the_api_server_accepts_all_objects_unchanged(
    cluster: ControlPlane, source: str
) -> None:
    if source == "chart":
        features = dict.fromkeys(("resctrl", "speedSelect", "systemd", "selinux"), True)
        objects = Release(kinds=known(cluster)).render(
            features=features, enableRuntime={"enabled": True}
        )
    else:
        objects = rendered(MANIFESTS / "cluster")

    cluster.kubectl.apply(*objects, server_side=True)

    for one in objects:
        found = cluster.kubectl.within(NAMESPACE).get(
            one["kind"], one["metadata"]["name"]
        )
        assert list(lost(found, one)) == [], one["kind"]


def test_objects_applied_again_are_unchanged(
    control_plane: ControlPlane, installed: tuple[dict[str, Any], ...]
) -> None:
    kubectl = control_plane.kubectl.within(NAMESPACE)
    before = kubectl.get("daemonset", "nri-resmgr")["metadata"]["generation"]

    control_plane.kubectl.apply(*installed, server_side=True)

    after = kubectl.get("daemonset", "nri-resmgr")["metadata"]["generation"]
    assert after == before


def test_the_agent_has_exactly_the_rights_it_needs(
    control_plane: ControlPlane, installed: tuple[dict[str, Any], ...]
) -> None:
    user = Account(control_plane, NAMESPACE, "nri-resmgr").user
    asked = {
        *((group, name, below) for group, name, below, _, _ in RIGHTS),
        *((group, name, "status") for group, name, _, _, _ in RIGHTS if group),
        *OTHERS,
    }

    allowed = {
        (*one, verb, namespace)
        for one in asked
        for verb in VERBS
        for namespace in ("", NAMESPACE, "default")
        if may(control_plane, user, (*one, verb, namespace))
    }

    # A right without a namespace is one in each of them.
    everywhere = {one[:4] for one in RIGHTS if one[4] == ""}
    wanted = RIGHTS | {
        (*one, namespace) for one in everywhere for namespace in (NAMESPACE, "default")
    }
    assert allowed == wanted


def may(
    control_plane: ControlPlane, user: str, right: tuple[str, str, str, str, str]
) -> bool:
    group, resource, below, verb, namespace = right
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "group": group,
                "resource": resource,
                "subresource": below,
                "verb": verb,
                "namespace": namespace,
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    allowed: bool = control_plane.ask("POST", path, review).body["status"]["allowed"]
    return allowed


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nodes?fieldSelector=metadata.name=any", 200),
        ("/api/v1/namespaces/kube-system/configmaps", 403),
        ("/api/v1/pods", 403),
        ("/api/v1/namespaces/kube-system/secrets", 403),
    ],
)
def test_the_token_of_the_agent_has_the_rights_of_its_account(
    control_plane: ControlPlane,
    installed: tuple[dict[str, Any], ...],
    path: str,
    status: int,
) -> None:
    token = Account(control_plane, NAMESPACE, "nri-resmgr").token()

    assert control_plane.ask("GET", path, token=token).status == status
