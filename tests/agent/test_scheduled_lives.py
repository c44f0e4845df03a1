"""The simulation behind docs/benchmarks.md repeats itself; claims are not refused."""

from __future__ import annotations

from typing import Final

import pytest

from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.values import MilliCpus, QosClass
from tests.benchmarks.lives import PodLife
from tests.benchmarks.scheduled import CLUSTERS, make_node, outcomes
from tests.benchmarks.schedulers import CACHE, CLAIMS, PLAIN, TOPOLOGY

HOURS: Final = 0.1


def pod(cpus: int, number: int = 0, qos: QosClass = QosClass.GUARANTEED) -> PodLife:
    row = ContainerRow(qos=qos, request=MilliCpus(cpus))
    return PodLife(number, 0.0, 60.0, (row,))


def test_equal_seeds_have_equal_outcomes() -> None:
    first, second = (
        outcomes("mixed, topology-aware", TOPOLOGY, (7,), HOURS) for _ in range(2)
    )

    assert first == second
    assert first[0].counts["pods"] > 50


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_nodes_refuse_no_claims(cluster: str) -> None:
    (found,) = outcomes(cluster, CLAIMS, (3,), HOURS)

    assert found.counts["exclusive"] == 0


def test_a_node_published_as_full_is_skipped() -> None:
    node = make_node("1s1n4c1t", "topology-aware")
    assert all(one.choose(pod(3000), [node.seen]) for one in (PLAIN, TOPOLOGY, CACHE))
    # Not bound by the scheduler, and nothing of a request is known: such as a pod that
    # the kubelet itself has started.
    assert node.create(pod(1000, 1))

    for one in (PLAIN, TOPOLOGY):
        assert one.choose(pod(3000, 2), [node.seen])  # the object is older
    node.publish(by_cache=False)

    assert PLAIN.choose(pod(3000, 2), [node.seen])
    assert TOPOLOGY.choose(pod(3000, 2), [node.seen]) is None
    assert TOPOLOGY.choose(pod(2000, 2), [node.seen])
    assert TOPOLOGY.choose(pod(3000, 2, QosClass.BURSTABLE), [node.seen])


def test_the_cache_counts_what_was_bound_since() -> None:
    node = make_node("1s1n4c1t", "topology-aware")
    node.seen.bind(pod(2000, 1))
    node.seen.bound.clear()  # so that the sum of requests does not decide

    assert TOPOLOGY.choose(pod(2000, 2), [node.seen])
    assert CACHE.choose(pod(2000, 2), [node.seen]) is None
    node.publish(by_cache=True)  # of other pods than the scheduler knows: ignored
    assert CACHE.choose(pod(2000, 2), [node.seen]) is None
    node.seen.coming.clear()
    node.publish(by_cache=True)
    assert CACHE.choose(pod(2000, 2), [node.seen])


def test_nodes_with_fewer_zones_for_a_pod_are_better() -> None:
    # Three free CPUs in a zone, and seven.
    split = make_node("2s1n4c1t", "topology-aware").seen
    whole = make_node("1s1n8c1t", "topology-aware").seen

    assert TOPOLOGY.choose(pod(5000), [split, whole]) is whole
