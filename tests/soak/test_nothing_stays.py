"""Removed pods leave nothing behind, whatever they requested."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Mapping

import pytest

from nri_resmgr.stub import Pod
from nri_resmgr.values import ResmgrError
from tests.control.daemon_parts import Parts, make_parts
from tests.fuzz import samples
from tests.soak.node import ANNOTATIONS

# Twice as many as bounded caches and histories hold.
PODS = 600
# Full caches vary by some hundreds of objects. One object left behind by each pod would
# be more.
FEW = 450


def objects() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__qualname__ for one in gc.get_objects())


@pytest.mark.parametrize("kind", range(len(ANNOTATIONS)))
@pytest.mark.parametrize("end", ["stop", "pod is removed"])
def test_removed_pods_leave_no_objects(kind: int, end: str) -> None:
    parts = make_parts(max_weight=500)
    for number in range(PODS):
        live(parts, samples.pod(f"container-{number}", ANNOTATIONS[kind](number)), end)
    before = objects()
    for number in range(PODS, 2 * PODS):
        live(parts, samples.pod(f"container-{number}", ANNOTATIONS[kind](number)), end)

    assert grown(before, objects()) == {}


def live(parts: Parts, pod: Pod, end: str) -> None:
    """Let a pod run, and end in one way."""
    policy, container = parts.policy, samples.container(pod.name, 0.1)
    policy.run_pod_sandbox(pod)
    with contextlib.suppress(ResmgrError):
        policy.create_container(pod, container)
        policy.start_container(pod, container)
    if end == "stop":
        policy.stop_container(pod, container)
    policy.remove_pod_sandbox(pod)


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {
        kind: count - before.get(kind, 0)
        for kind, count in after.items()
        if count > before.get(kind, 0) + FEW
    }
