"""Containers of a pod never ask for more than the pod, whatever the kubelet writes."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
from hypothesis import assume, given

from nri_resmgr.app.plugin.pod_budget import divided
from nri_resmgr.policy.events import ContainerSpec, PodBudget
from nri_resmgr.values import MilliCpus, QosClass


class Written(msgspec.Struct, frozen=True):
    """A pod as its author writes it: the pod's own CPUs, and those of containers.

    None for a container that says nothing of CPUs.
    """

    request: int
    limit: int
    containers: tuple[int | None, ...]


@st.composite
def pods(draw: st.DrawFn) -> Written:
    request = draw(st.integers(100, 64_000))
    limit = request + draw(st.integers(0, 8_000))
    containers = draw(st.lists(st.none() | st.integers(10, request), max_size=6))
    # What the API server accepts.
    assume(sum(one or 0 for one in containers) <= request)
    return Written(request, limit, tuple(containers))


def seen(pod: Written) -> tuple[list[ContainerSpec], PodBudget]:
    """Return what its cgroup values say: silent containers inherit the pod's limit."""
    qos = QosClass.GUARANTEED if pod.request == pod.limit else QosClass.BURSTABLE
    specs = [
        ContainerSpec(
            str(place),
            qos=qos,
            request=MilliCpus(pod.limit if own is None else own),
            limit=MilliCpus(pod.limit if own is None else own),
        )
        for place, own in enumerate(pod.containers)
    ]
    return specs, PodBudget(MilliCpus(pod.request), MilliCpus(pod.limit), None)


@given(pods())
def test_the_sum_is_within_the_budget(pod: Written) -> None:
    found = divided(*seen(pod))

    assert sum(one.request for one in found) <= pod.request + len(found)


@given(pods())
def test_containers_keep_what_they_ask_for_themselves(pod: Written) -> None:
    specs, budget = seen(pod)
    found = divided(specs, budget)

    for own, one, spec in zip(pod.containers, found, specs, strict=True):
        # One that asks for all of the pod leaves nothing, and is like a silent one.
        if own is not None and own != pod.limit:
            assert one == spec


@given(pods())
def test_the_others_share_what_is_left_equally(pod: Written) -> None:
    assume(pod.limit not in pod.containers)
    silent = pod.containers.count(None)
    left = pod.request - sum(one or 0 for one in pod.containers)
    found = divided(*seen(pod))

    for own, one in zip(pod.containers, found, strict=True):
        if own is None and len(found) > 1 and left < pod.request * silent:
            assert one.request in (left // silent, pod.limit)
            assert one.limit == pod.limit
            assert not (one.shares_budget and one.whole_cpus)


@given(pods(), st.integers(0, 6))
def test_the_order_of_arrival_does_not_matter(pod: Written, last: int) -> None:
    specs, budget = seen(pod)
    first = divided(specs[:last], budget)

    assert divided((*first, *specs[last:]), budget) == divided(specs, budget)


@given(st.lists(st.integers(10, 9000), min_size=1, max_size=6), st.booleans())
def test_pods_without_resources_of_their_own_are_left_alone(
    requests: list[int],
    guaranteed: bool,  # noqa: FBT001 - drawn
) -> None:
    qos = QosClass.GUARANTEED if guaranteed else QosClass.BURSTABLE
    specs = tuple(
        ContainerSpec(str(place), qos=qos, request=MilliCpus(one), limit=MilliCpus(one))
        for place, one in enumerate(requests)
    )
    amount = MilliCpus(sum(requests))

    assert divided(specs, PodBudget(amount, amount, None)) == specs
