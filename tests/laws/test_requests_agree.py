"""What the kubelet makes of requests agrees with them, and gives them back."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import assume, given

from nri_resmgr.app.requests.amounts import Misplaced
from nri_resmgr.app.requests.webhook import read_resources
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import (
    CgroupValues,
    Requests,
    contradiction,
    reconstruct,
    resized,
)
from nri_resmgr.values import Bytes, MilliCpus, QosClass

NODE = Bytes(512 << 30)
G, B = QosClass.GUARANTEED, QosClass.BURSTABLE


def kubelets(asked: Requests, qos: QosClass) -> CgroupValues:
    """Encode requests as the kubelet does, in its own arithmetic."""
    score = -997
    if qos is B:
        score = 1000 - 1000 * asked.memory // NODE
        score = 3 if score < 3 else min(score, 999)
    shares = 2
    if asked.cpu:
        shares = min(max(asked.cpu * 1024 // 1000, 2), 262_144)
    quota = max(asked.cpu_limit * 100, 1000) if asked.cpu_limit else 0
    return CgroupValues(
        shares=shares,
        quota=quota,
        period=100_000,
        memory_limit=asked.memory_limit or 0,
        oom_score_adj=score,
    )


@st.composite
def burstable(draw: st.DrawFn) -> Requests:
    cpu, memory = draw(st.integers(0, 255_999)), draw(st.integers(0, NODE))
    more_cpu, more_memory = draw(st.integers(0, 9000)), draw(st.integers(1, NODE))
    return Requests(
        cpu=MilliCpus(cpu),
        cpu_limit=draw(st.sampled_from([None, MilliCpus(cpu + more_cpu or 1)])),
        memory=Bytes(memory),
        memory_limit=draw(st.sampled_from([None, Bytes(memory + more_memory)])),
    )


@st.composite
def guaranteed(draw: st.DrawFn) -> Requests:
    cpu, memory = MilliCpus(draw(st.integers(10, 10**6))), Bytes(draw(st.integers(1)))
    return Requests(cpu=cpu, cpu_limit=cpu, memory=memory, memory_limit=memory)


@given(burstable())
def test_a_burstable_container_agrees_with_its_values(asked: Requests) -> None:
    assert contradiction(asked, kubelets(asked, B), B, NODE) == ""


@given(guaranteed())
def test_a_guaranteed_container_agrees_with_its_values(asked: Requests) -> None:
    assert contradiction(asked, kubelets(asked, G), G, NODE) == ""


@given(guaranteed())
def test_a_guaranteed_container_is_given_back_whole(asked: Requests) -> None:
    assert reconstruct(kubelets(asked, G), G, NODE) == asked


@given(st.integers(1, 999), st.integers(1, 999), st.integers(1))
def test_shares_set_by_the_plugin_do_not_contradict_requests(
    whole: int, fraction: int, memory: int
) -> None:
    cpu = MilliCpus(whole * 1000 + fraction)
    asked = Requests(
        cpu=cpu, cpu_limit=cpu, memory=Bytes(memory), memory_limit=Bytes(memory)
    )
    changed = msgspec.structs.replace(asked, cpu=MilliCpus(fraction))
    ours = msgspec.structs.replace(
        kubelets(asked, G), shares=kubelets(changed, G).shares
    )

    assert reconstruct(ours, G, NODE) == asked
    assert contradiction(asked, ours, G, NODE) == ""


@given(burstable())
def test_the_cpus_of_a_burstable_container_are_given_back(asked: Requests) -> None:
    found = reconstruct(kubelets(asked, B), B, NODE)
    cpu = asked.cpu if asked.cpu > 2 else 0
    # The kernel takes no less quota than that of a hundredth of a CPU.
    limit = max(asked.cpu_limit, 10) if asked.cpu_limit else None

    assert (found.cpu, found.cpu_limit) == (cpu, limit)
    assert found.memory <= asked.memory


@given(burstable(), st.integers(1, 10**6))
def test_other_shares_are_noticed(asked: Requests, more: int) -> None:
    values = kubelets(asked, B)
    others = values.shares + more
    fraction = asked.cpu % 1000 * 1024 // 1000
    if others != max(fraction, 2):
        other = msgspec.structs.replace(values, shares=others)

        assert contradiction(asked, other, B, NODE).startswith("cpu.shares is")


KEYS = (
    *("containers", "initContainers", "pod", "requests", "limits", "restartPolicy"),
    *("cpu", "memory", "hugepages-2Mi", "hugepages-", "a.b/c"),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON.map(json.dumps) | st.text(max_size=40))
def test_an_annotation_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Misplaced):
        read_resources(text)


@given(burstable() | guaranteed())
def test_an_annotation_is_read_back_as_written(asked: Requests) -> None:
    limits: dict[str, str] = {}
    if asked.cpu_limit:
        limits["cpu"] = f"{asked.cpu_limit}m"
    if asked.memory_limit:
        limits["memory"] = str(asked.memory_limit)
    requests = {"cpu": f"{asked.cpu}m", "memory": str(asked.memory)}
    text = json.dumps({"containers": {"c": {"requests": requests, "limits": limits}}})
    if (asked.memory_limit or 0) < 1 << 63:
        changed = msgspec.structs.replace(asked, source=RequestOrigin.ANNOTATION)

        assert read_resources(text).containers == {"c": changed}


@given(burstable(), burstable())
def test_a_resize_of_a_burstable_container_is_followed(
    before: Requests, after: Requests
) -> None:
    # The kubelet removes no limits and sets no OOM score in a resize, and up to two
    # thousandths are no request for it.
    assume(after.cpu_limit and after.memory_limit and (after.cpu > 2 or not after.cpu))
    values = msgspec.structs.replace(
        kubelets(after, B), oom_score_adj=kubelets(before, B).oom_score_adj
    )
    # The smallest quota is that of ten thousandths.
    limit = MilliCpus(max(after.cpu_limit or 0, 10))

    assert resized(before, values, B) == msgspec.structs.replace(
        after, cpu_limit=limit, memory=before.memory, source=RequestOrigin.RESIZED
    )


@given(guaranteed(), guaranteed(), st.sampled_from(["quota", "none"]))
def test_a_resize_of_a_guaranteed_container_is_followed(
    before: Requests, after: Requests, limits: str
) -> None:
    assume(after.cpu <= 256_000)
    values = kubelets(after, G)
    if limits == "none":  # as the kubelet does with exclusive CPUs
        values = msgspec.structs.replace(values, quota=0)

    assert resized(before, values, G) == msgspec.structs.replace(
        after, source=RequestOrigin.RESIZED
    )
