"""What is read of the kubelet's pods is shared, and is freed with them."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Final

import pytest

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.pod_reader import read_pod
from nri_resmgr.testing.kubelet.pods import container, pod, status

_CONTAINERS: Final = 10
_RESOURCES: Final = 10
_PODS: Final = 200

# The texts of all pods take ten times as much.
_FEW: Final = 512 << 10  # bytes


def encoded(number: int) -> bytes:
    """Make a pod with texts that no other one has."""
    made = []
    for at in range(_CONTAINERS):
        ends = [f"{number}-{at}-{each}" for each in range(_RESOURCES)]
        amounts = {f"example.com/{end}": end.replace("-", "0") for end in ends}
        made.append(container(f"c{at}-{number}", amounts))
    return pod(f"uid-{number}", *made).SerializeToString()


def test_removed_pods_leave_no_texts() -> None:
    for number in range(_PODS):  # fills what is bounded
        assert read_pod(encoded(number))
    tracemalloc.start()
    try:
        for number in range(_PODS, 2 * _PODS):
            assert read_pod(encoded(number))
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert grown < _FEW


def test_equal_texts_are_one_object() -> None:
    one = read_pod(pod("a", container("web", {"cpu": "1500m"})).SerializeToString())
    other = read_pod(pod("b", container("web", {"cpu": "1500m"})).SerializeToString())
    assert one is not None
    assert other is not None
    texts, others = list(one.containers[0].texts()), list(other.containers[0].texts())

    assert texts == ["web", "cpu", "1500m"]
    assert all(a is b for a, b in zip(texts, others, strict=True))


def test_amounts_that_no_resize_changes_are_kept_once() -> None:
    asked, limits = {"cpu": "100m"}, {"memory": "1Gi"}
    made = pod("a", container("web", asked, limits), namespace="shop")
    made.status.containerStatuses.append(
        status("web", asked, limits, allocated=made_requests(made))
    )
    found = read_pod(made.SerializeToString())
    assert found is not None
    (web,) = found.containers

    assert web.allocated == {"cpu": "100m", "memory": "1Gi"}
    assert web.allocated is web.desired.requests
    assert web.actual is web.desired


def made_requests(made: core.Pod) -> list[tuple[str, str]]:
    """Return the requests of the only container, a memory request included."""
    asked = made.spec.containers[0].resources.requests
    return [(name, one.string) for name, one in asked.items()]


def test_amounts_in_a_resize_are_apart() -> None:
    made = pod("a", container("web", {"cpu": "300m"}))
    made.status.containerStatuses.append(
        status("web", {"cpu": "100m"}, allocated=[("cpu", "200m")])
    )
    found = read_pod(made.SerializeToString())
    assert found is not None
    (web,) = found.containers
    assert web.actual is not None

    amounts = (web.desired.requests, web.allocated, web.actual.requests)
    assert amounts == ({"cpu": "300m"}, {"cpu": "200m"}, {"cpu": "100m"})


def test_nothing_of_an_environment_is_kept() -> None:
    made = container("web", {"cpu": "1500m"})
    # A Container's field 7 is a variable: its name and value are the fields 1 and 2.
    made.MergeFromString(b"\x3a\x13\x0a\x08PASSWORD\x12\x07hunter2")
    data = pod("a", made).SerializeToString()
    assert b"hunter2" in data

    found = read_pod(data)

    assert found is not None
    assert list(found.containers[0].texts()) == ["web", "cpu", "1500m"]
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("encoded_field", "priority"),
    [
        pytest.param("", None, id="none"),
        pytest.param("c80100", 0, id="zero is one, too"),
        pytest.param("c801e8afd6b907", 2_000_001_000, id="critical for the node"),
        # As protobuf has it: ten bytes of two's complement.
        pytest.param("c801f6ffffffffffffffff01", -10, id="negative"),
    ],
)
def test_the_priority_is_the_field_25_of_the_specification(
    encoded_field: str, priority: int | None
) -> None:
    made = pod("a", container("web"))
    made.spec.MergeFromString(bytes.fromhex(encoded_field))

    found = read_pod(made.SerializeToString())

    assert found is not None
    assert found.priority == priority
