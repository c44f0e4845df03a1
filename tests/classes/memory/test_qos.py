"""Memory QoS: from annotations and a limit to files of cgroup v2."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.memory import (
    MemoryQosClass,
    MemoryQosConfig,
    memory_qos_request,
    memory_qos_unified,
)
from nri_resmgr.values import Bytes, ResmgrError

CONFIG = MemoryQosConfig(
    {
        "bronze": MemoryQosClass(500_000),
        "silver": MemoryQosClass(200_000),
        "third": MemoryQosClass(333_333),
        "all": MemoryQosClass(1_000_000),
        "gold": MemoryQosClass(),
    },
    ("memory.high", "memory.swap.max", "memory.oom.group", "memory.reclaim"),
)
CLASS = "class.memory-qos.nri.io"
HIGH = "memory.high.memory-qos.nri.io"
SWAP = "memory.swap.max.memory-qos.nri.io"


def files(annotations: dict[str, str], limit: int | None) -> dict[str, str]:
    request = memory_qos_request(annotations, "web")
    size = None if limit is None else Bytes(limit)
    return memory_qos_unified(request, CONFIG, size, "default/shop/web")


@pytest.mark.parametrize(
    ("annotations", "limit", "written"),
    [
        pytest.param({}, 1000, {}, id="nothing asked"),
        pytest.param({"other.io/a": "b"}, 1000, {}, id="others are none of ours"),
        pytest.param(
            {CLASS: "bronze"},
            1 << 30,
            {"memory.high": "536870912", "memory.swap.max": "max"},
            id="half of a gibibyte",
        ),
        pytest.param(
            {CLASS: "silver"},
            1000,
            {"memory.high": "800", "memory.swap.max": "max"},
            id="a fifth is swapped, to the byte",
        ),
        pytest.param(
            {CLASS: "third"},
            1000,
            # 1000 * 666667 / 1000000 = 666.667
            {"memory.high": "666", "memory.swap.max": "max"},
            id="rounded down",
        ),
        pytest.param(
            {CLASS: "all"},
            1000,
            {"memory.high": "0", "memory.swap.max": "max"},
            id="everything swapped",
        ),
        pytest.param({CLASS: "gold"}, 1000, {}, id="a ratio of nothing sets nothing"),
        pytest.param({CLASS: "gold"}, None, {}, id="and needs no limit"),
        pytest.param(
            {CLASS: "bronze", f"{CLASS}/web": "silver"},
            1000,
            {"memory.high": "800", "memory.swap.max": "max"},
            id="the container's class counts",
        ),
        pytest.param(
            {f"{CLASS}/db": "silver"}, 1000, {}, id="the class of another container"
        ),
        pytest.param(
            {CLASS: "bronze", f"{CLASS}/web": ""},
            None,
            {},
            id="an empty class opts out of the pod's",
        ),
        pytest.param(
            {CLASS: "bronze", f"{CLASS}/web": "", HIGH: "5M"},
            None,
            {"memory.high": "5M"},
            id="it opts out of the class only",
        ),
        pytest.param({CLASS: ""}, 1000, {}, id="an empty class of the pod"),
        pytest.param(
            {CLASS: "bronze", SWAP: "4096"},
            1000,
            {"memory.high": "500", "memory.swap.max": "4096"},
            id="a file of its own counts against the class",
        ),
        pytest.param(
            {f"{CLASS}/web": "bronze", HIGH: "max"},
            1000,
            {"memory.high": "max", "memory.swap.max": "max"},
            id="even if the class is narrower",
        ),
        pytest.param(
            {SWAP: "1G", f"{SWAP}/web": "0"},
            None,
            {"memory.swap.max": "0"},
            id="the container's value counts",
        ),
        pytest.param(
            {SWAP: "1G", f"{SWAP}/web": ""}, None, {}, id="an empty one takes it away"
        ),
        pytest.param(
            {HIGH: " 0x1000 ", "memory.oom.group.memory-qos.nri.io": "1"},
            None,
            {"memory.high": "0x1000", "memory.oom.group": "1"},
            id="a hexadecimal number, and a flag",
        ),
        pytest.param(
            {"memory.reclaim.memory-qos.nri.io": "1G swappiness=60"},
            None,
            {"memory.reclaim": "1G swappiness=60"},
            id="files that are allowed and not known get what is written",
        ),
        pytest.param(
            {".memory-qos.nri.io": "x", "memory-qos.nri.io": "x"},
            None,
            {},
            id="no file at all",
        ),
    ],
)
def test_annotations_set(
    annotations: dict[str, str], limit: int | None, written: dict[str, str]
) -> None:
    assert files(annotations, limit) == written


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        pytest.param(
            {CLASS: "iron"},
            "default/shop/web asks for memory QoS class 'iron'; known: bronze, silver, "
            "third, all, gold; to help, name one of these, or add the class to the "
            "configuration",
            id="a class that is not there",
        ),
        pytest.param(
            {CLASS: "silver"},
            "default/shop/web is in memory QoS class 'silver', whose memory.high is "
            "its memory limit less 20%, and it has no memory limit; to help, set one, "
            "or put it into no class by an empty annotation",
            id="a class without a limit to share out",
        ),
        pytest.param(
            {"memory.low.memory-qos.nri.io": "1"},
            "default/shop/web sets memory.low by annotation, which is not allowed; "
            "allowed: memory.high, memory.swap.max, memory.oom.group, memory.reclaim; "
            "to help, add it to unifiedAnnotations of the configuration",
            id="a file that is not allowed",
        ),
        pytest.param(
            {f"{HIGH}/web": "1Gi"},
            f"annotation {HIGH}/web: '1Gi' is no value for memory.high: bytes, also "
            "with K, M or G, or max",
            id="a quantity of Kubernetes, which the kernel does not know",
        ),
        pytest.param(
            {HIGH: "-1"},
            f"annotation {HIGH}: '-1' is no value for memory.high: bytes, also with "
            "K, M or G, or max",
            id="a negative number",
        ),
        pytest.param(
            {"memory.oom.group.memory-qos.nri.io": "true"},
            "annotation memory.oom.group.memory-qos.nri.io: 'true' is no value "
            "for memory.oom.group: 0 or 1",
            id="a flag that is no number",
        ),
        pytest.param(
            {"memory.reclaim.memory-qos.nri.io": "1\n2"},
            "annotation memory.reclaim.memory-qos.nri.io: '1\\n2' is not one line of "
            "text",
            id="several lines",
        ),
    ],
)
def test_a_refusal_names_the_remedy(
    annotations: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ResmgrError) as error:
        files(annotations, None)

    assert str(error.value) == complaint


@pytest.mark.parametrize("limit", [None, 0, -1])
def test_no_limit_is_written_in_several_ways(limit: int | None) -> None:
    with pytest.raises(ResmgrError, match="it has no memory limit"):
        files({CLASS: "silver"}, limit)


def test_a_refusal_without_allowed_annotations_names_none() -> None:
    request = memory_qos_request({HIGH: "1"}, "web")
    with pytest.raises(ResmgrError, match=r"not allowed; none is; to help"):
        memory_qos_unified(request, MemoryQosConfig({}), None, "web")


@given(st.integers(1, 1 << 50), st.integers(1, 1_000_000))
def test_high_is_the_largest_part_that_leaves_the_share(
    limit: int, swapped: int
) -> None:
    config = MemoryQosConfig({"some": MemoryQosClass(swapped)})
    request = memory_qos_request({CLASS: "some"}, "web")
    high = int(memory_qos_unified(request, config, Bytes(limit), "web")["memory.high"])

    # At least the share is over the line, and one byte more would be too much.
    assert (limit - high) * 1_000_000 >= limit * swapped
    assert (limit - high - 1) * 1_000_000 < limit * swapped


@given(
    st.dictionaries(
        st.sampled_from(
            [key + end for key in (CLASS, HIGH, SWAP) for end in ("", "/web", "/db")]
        ),
        st.sampled_from(["", "bronze", "7", "max"]),
    )
)
def test_annotations_for_other_containers_have_no_effect(
    annotations: dict[str, str],
) -> None:
    def outcome(some: dict[str, str]) -> Any:
        try:
            return files(some, 1000)
        except ResmgrError as error:
            return str(error)

    ours = {key: value for key, value in annotations.items() if "/db" not in key}
    backwards = dict(reversed(annotations.items()))
    assert outcome(annotations) == outcome(ours) == outcome(backwards)
