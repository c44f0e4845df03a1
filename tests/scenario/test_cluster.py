"""A rollout to the nodes of a cluster: which pods it replaces where, and adds."""

from __future__ import annotations

import pytest

from nri_resmgr.scenario.cluster import Cluster, ClusterNode, cluster_of
from nri_resmgr.scenario.steps import LeftOut, RunPods, Skipped
from tests.scenario.cluster_objects import (
    containers,
    labelled,
    objects,
    pod,
    rolled,
    web_pod,
)


def runs(node: ClusterNode) -> list[tuple[str, int]]:
    """Return the names of what is run on a node, with the numbers of pods."""
    steps = node.scenario.steps
    return [(one.name, one.replicas) for one in steps if isinstance(one, RunPods)]


def new(cluster: Cluster) -> list[tuple[str, int]]:
    return [(one.name, one.replicas) for one in cluster.new]


def test_pods_run_on_their_nodes_oldest_first() -> None:
    present = objects(
        pod("a", "n1", since="2026-02-01T00:00:00Z"),
        pod("b", "n2"),
        pod("c", "n1", since="2026-01-01T00:00:00Z"),
    )

    one, two = cluster_of(present, [], ["n2", "n1"]).nodes

    assert (one.name, one.present, runs(one)) == ("n1", 2, [("c", 1), ("a", 1)])
    assert (two.name, two.present, runs(two)) == ("n2", 1, [("b", 1)])


def test_a_pod_that_did_not_start_yet_has_the_age_of_its_object() -> None:
    started, waits = pod("started", "n1", since="2026-01-02"), pod("waits", "n1")
    waits["status"] = {"phase": "Pending"}
    waits["metadata"]["creationTimestamp"] = "2026-01-01"

    (node,) = cluster_of(objects(started, waits), [], ["n1"]).nodes

    assert runs(node) == [("waits", 1), ("started", 1)]


@pytest.mark.parametrize(
    ("owner", "label", "kind", "name"),
    [
        pytest.param(
            "ReplicaSet web-5d4", "pod-template-hash", "Deployment", "web", id="Depl."
        ),
        pytest.param(
            "ReplicaSet web-5d4", "rollouts-pod-template-hash", "Rollout", "web", id="R"
        ),
        pytest.param("ReplicaSet web", "x", "ReplicaSet", "web", id="ReplicaSet"),
        pytest.param("DaemonSet web", "x", "DaemonSet", "web", id="DaemonSet"),
        pytest.param("Job web-29081230", "x", "CronJob", "web", id="CronJob"),
    ],
)
def test_pods_of_what_is_rolled_out_are_replaced_where_they_run(
    owner: str, label: str, kind: str, name: str
) -> None:
    places = {"x": "n1", "y": "n1", "z": "n2"}
    pods = (pod(one, node, owner=owner) for one, node in places.items())
    present = objects(
        *(labelled(one, {label: "5d4"}) for one in pods),
        pod("other", "n2", owner="ReplicaSet other-1"),
    )

    cluster = cluster_of(present, objects(rolled(kind, name)), ["n1", "n2", "n3"])

    assert [(one.present, one.replaced, runs(one)) for one in cluster.nodes] == [
        (0, 2, [("web", 2)]),
        (1, 1, [("other", 1), ("web", 1)]),
        (0, 0, []),
    ]
    assert cluster.new == ()


def test_pods_of_a_stateful_set_keep_their_names() -> None:
    present = objects(
        pod("db-1", "n1", owner="StatefulSet db"),
        pod("db-0", "n2", owner="StatefulSet db"),
    )

    cluster = cluster_of(present, objects(rolled("StatefulSet", "db")), ["n1", "n2"])

    assert [runs(one) for one in cluster.nodes] == [[("db-1", 1)], [("db-0", 1)]]
    assert new(cluster) == [("db-new", 1)]


@pytest.mark.parametrize(
    ("owner", "labels"),
    [
        pytest.param("ReplicaSet web-blue", {}, id="a ReplicaSet of its own"),
        pytest.param("ReplicaSet web", {}, id="a ReplicaSet of the same name"),
        pytest.param(
            "ReplicaSet web-blue-5d4", {"pod-template-hash": "5d4"}, id="of web-blue"
        ),
        pytest.param("Job web-blue", {}, id="a Job of its own"),
        pytest.param("StatefulSet webs", {}, id="a longer name"),
    ],
)
def test_names_that_begin_alike_are_other_objects(
    owner: str, labels: dict[str, str]
) -> None:
    present = objects(labelled(pod("x", "n1", owner=owner), labels))
    rollout = objects(
        *(rolled(kind, "web") for kind in ("Deployment", "StatefulSet", "CronJob"))
    )

    (node,) = cluster_of(present, rollout, ["n1"]).nodes

    assert (node.present, node.replaced, runs(node)) == (1, 0, [("x", 1)])


def test_a_pod_is_replaced_by_its_new_manifest() -> None:
    manifest = pod("web", "", cpu=4)

    cluster = cluster_of(objects(pod("web", "n1")), objects(manifest), ["n1"])

    (node,) = cluster.nodes
    assert (node.present, node.replaced, runs(node)) == (0, 1, [("web", 1)])
    assert cluster.new == ()


def test_an_object_of_another_namespace_replaces_nothing() -> None:
    other = rolled("StatefulSet", "web")
    other["metadata"]["namespace"] = "test"
    present = objects(pod("web-0", "n1", owner="StatefulSet web"))

    cluster = cluster_of(present, objects(other), ["n1"])

    (node,) = cluster.nodes
    assert (node.replaced, runs(node)) == (0, [("web-0", 1)])
    assert new(cluster) == [("web", 3)]


@pytest.mark.parametrize(
    ("replicas", "added"),
    [
        pytest.param(5, [("web-new", 2)], id="more"),
        pytest.param(3, [], id="as many"),
        # Which ones end is not known: all are replaced.
        pytest.param(1, [], id="fewer"),
    ],
)
def test_replicas_beside_those_in_the_cluster_are_new(
    replicas: int, added: list[tuple[str, int]]
) -> None:
    """The one on a node without a dump counts, too."""
    present = objects(web_pod("a", "n1"), web_pod("b", "n1"), web_pod("c", "n9"))
    rollout = objects(rolled("Deployment", "web", replicas=replicas))

    cluster = cluster_of(present, rollout, ["n1"])

    assert [runs(one) for one in cluster.nodes] == [[("web", 2)]]
    assert new(cluster) == added


def test_pods_of_a_new_object_need_a_node() -> None:
    present = objects(pod("db", "n1"))

    cluster = cluster_of(present, objects(rolled("Deployment", "web")), ["n1", "n2"])

    assert [runs(one) for one in cluster.nodes] == [[("db", 1)], []]
    assert new(cluster) == [("web", 3)]


def test_a_new_daemon_set_is_on_each_node() -> None:
    cluster = cluster_of([], objects(rolled("DaemonSet", "web")), ["n1", "n2"])

    assert [runs(one) for one in cluster.nodes] == [[("web", 1)], [("web", 1)]]
    assert cluster.new == ()


def test_new_pods_have_names_that_are_free_on_all_nodes() -> None:
    present = objects(pod("web-1", "n2"))

    cluster = cluster_of(present, objects(rolled("Deployment", "web")), ["n1", "n2"])

    assert new(cluster) == [("web-deployment", 3)]


def test_all_pods_of_an_object_with_several_templates_are_new() -> None:
    part = {"replicas": 2, "template": {"spec": containers(1)}}
    ray = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ray", "namespace": "shop"},
        "spec": {"head": part, "worker": part},
    }
    present = objects(pod("ray-h", "n1", owner="RayCluster ray"))

    cluster = cluster_of(present, objects(ray), ["n1"])

    (node,) = cluster.nodes
    assert (node.replaced, runs(node)) == (1, [])
    assert new(cluster) == [("ray-head", 2), ("ray-worker", 2)]


def test_what_does_not_run_on_a_known_node_is_named() -> None:
    ended = pod("old", "n1") | {"status": {"phase": "Failed"}}
    odd = {"apiVersion": "a.io/v1", "kind": "Odd", "metadata": {"name": "o"}}
    present = objects(
        pod("lost", "n9"), pod("waits", ""), rolled("Deployment", "web"), ended, odd
    )

    cluster = cluster_of(present, [], ["n1"])

    why = "only pods that are bound to a node count in a cluster"
    assert [runs(one) for one in cluster.nodes] == [[]]
    assert cluster.left_out == (
        LeftOut("v1", "Pod", "shop/lost", "there is no dump of its node n9"),
        LeftOut("a.io/v1", "Odd", "o", "its kind is unknown", "file"),
    )
    assert cluster.skipped == (
        Skipped("Deployment", 1, why),
        Skipped("Pod", 1, why),
        Skipped("Pod", 1, "they have ended"),
    )
