"""The cache of pods: a law against a plain model, and its bounds."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from nri_resmgr.kubelet.pod import KubeletContainer, KubeletPod, Resources
from nri_resmgr.kubelet.pod_cache import (
    LARGEST_POD,
    MOST_BYTES,
    MOST_UNASKED,
    PodCache,
)

UIDS = st.sampled_from("abcde")


def pod(uid: str, cpu: str = "1", padding: int = 0) -> KubeletPod:
    resources = Resources({"cpu": cpu, "x" * padding: "1"})
    return KubeletPod(uid, "n", uid, (KubeletContainer("web", desired=resources),))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), UIDS, st.sampled_from("12")),
            st.tuples(st.just("ask"), UIDS, st.just("")),
            st.tuples(st.just("forget"), UIDS, st.just("")),
            st.tuples(st.just("keep"), UIDS, st.just("")),
        )
    )
)
def test_the_latest_report_of_each_pod_wins(steps: list[tuple[str, str, str]]) -> None:
    cache, known, asked = PodCache(), dict[str, str](), set[str]()
    changed: list[str] = []
    cache.on_change = lambda one: changed.append(one.uid)
    for what, uid, cpu in steps:
        changed.clear()
        match what:
            case "put":
                cache.put(pod(uid, cpu))
                is_new = known.get(uid) != cpu
                known[uid] = cpu
                assert changed == ([uid] if is_new and uid in asked else [])
            case "ask":
                found = cache.ask(uid)
                assert found == (pod(uid, known[uid]) if uid in known else None)
                asked.add(uid)
            case "forget" if uid in asked:
                cache.forget(uid)
                asked.discard(uid)
                known.pop(uid, None)
            case "keep":
                cache.keep_only({uid})
                for gone in asked - {uid}:
                    known.pop(gone, None)
                asked &= {uid}
        assert len(cache) == len(known)
        assert cache.size == sum(pod(uid, cpu).size for uid, cpu in known.items())


def test_only_pods_that_are_missing_are_looked_for() -> None:
    cache = PodCache()
    cache.put(pod("a"))
    for uid in ("a", "b", "c", "b"):
        cache.ask(uid)
    cache.put(pod("c"))

    assert [cache.take_missing(), cache.take_missing()] == ["b", ""]

    cache.want("b")
    cache.want("a")
    assert [cache.take_missing(), cache.take_missing()] == ["b", ""]
    assert not cache.wanted.is_set()


def test_pods_of_the_kubelet_alone_are_bounded_and_the_newest_stay() -> None:
    cache = PodCache()
    cache.ask("mine")
    cache.put(pod("mine"))
    for number in range(2 * MOST_UNASKED):
        cache.put(pod(str(number)))

    assert len(cache) == MOST_UNASKED + 1
    assert cache.ask("mine") is not None
    assert cache.ask(str(2 * MOST_UNASKED - 1)) is not None
    assert cache.ask("0") is None


def test_all_pods_together_are_bounded_in_bytes() -> None:
    cache = PodCache()
    for number in range(500):
        if number % 2:
            cache.ask(str(number))
        cache.put(pod(str(number), padding=100_000))
        assert cache.size <= MOST_BYTES

    # Those that the runtime does not know make room.
    assert all(cache.ask(str(number)) for number in range(1, 120, 2))
    assert cache.rejected > 0

    cache.put(pod("large", padding=LARGEST_POD))
    assert cache.ask("large") is None
