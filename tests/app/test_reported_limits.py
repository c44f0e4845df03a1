"""Limits of an adjustment that the runtime reports late are not the kubelet's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.adjustments.override import unadjusted
from nri_resmgr.app.plugin.changes.adjusting import adjust
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.stub import LinuxMemory, LinuxResources
from tests.app.test_adjustments import (
    adjustment,
    container,
    made,
    pod,
    read,
    run,
    spec_of,
)
from tests.examples import examples

GIB = 1 << 30


def adjust_to(policy: ResourcePolicy, cpus: int) -> None:
    """Adjust all containers to CPUs and as many GiB; 0 for no adjustment."""
    limits = {"cpu": str(cpus), "memory": f"{cpus}Gi"}
    text = adjustment(resources={"limits": limits})
    judged = adjust(policy, read(text) if cpus else [])
    assert judged.errors == {}


def begin_session(policy: ResourcePolicy, cpus: int, memory: int = 0) -> None:
    """Have a runtime report a container with these limits."""
    record = container("web", cpus, (memory or cpus) * GIB)
    policy.synchronize([pod("web")], [record])


@pytest.mark.parametrize("last", [0, 3], ids=["withdrawn", "changed"])
def test_a_session_that_reports_an_earlier_adjustment_changes_nothing(
    last: int,
) -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust_to(policy, 2)
    adjust_to(policy, last)
    decided = spec_of(policy, "web")

    begin_session(policy, 2)

    now = spec_of(policy, "web")
    assert (now.limit, now.memory_limit, now.adjusted, now.source) == (
        *(decided.limit, decided.memory_limit),
        *(decided.adjusted, decided.source),
    )
    assert unadjusted(now).limit == 1000


def test_a_resize_beside_an_earlier_adjustment_leaves_other_amounts() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust_to(policy, 2)
    adjust_to(policy, 3)

    policy.update_container(
        pod("web"),
        container("web", 2, 2 * GIB),
        LinuxResources(memory=LinuxMemory(limit=5 * GIB)),
    )

    own = unadjusted(spec_of(policy, "web"))
    assert (own.request, own.limit, own.memory_limit) == (1000, 1000, 5 * GIB)


def test_a_resize_that_no_session_saw_is_noticed_beside_an_earlier_adjustment() -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust_to(policy, 2)
    adjust_to(policy, 3)

    begin_session(policy, 4, memory=2)

    own = unadjusted(spec_of(policy, "web"))
    assert (own.limit, own.memory_limit) == (4000, GIB)


@pytest.mark.parametrize(
    ("last", "seen"),
    [
        pytest.param(3, 3, id="for a later adjustment"),
        pytest.param(3, 4, id="for a resize"),
        pytest.param(0, 4, id="for a resize without an adjustment"),
    ],
)
def test_limits_that_the_runtime_has_left_are_a_resize_when_they_come_back(
    last: int, seen: int
) -> None:
    policy = made("TopologyAwarePolicy")
    run(policy, "web", 1)
    adjust_to(policy, 2)
    adjust_to(policy, last)

    begin_session(policy, seen)
    begin_session(policy, 2)

    own = unadjusted(spec_of(policy, "web"))
    assert (own.request, own.limit, own.memory_limit) == (2000, 2000, 2 * GIB)


@examples(0.5)
@given(
    kind=st.sampled_from(["TopologyAwarePolicy", "StaticPolicy"]),
    steps=st.lists(
        st.one_of(
            st.integers(0, 3),
            st.builds("follow {}".format, st.integers(1, 3)),
            st.just("session"),
        ),
        max_size=15,
    ),
)
def test_own_amounts_stay_however_late_the_runtime_follows(
    kind: str, steps: list[int | str]
) -> None:
    policy = made(kind)
    run(policy, "web", 1)
    own = spec_of(policy, "web")
    decided, at = [1], 0  # the runtime has one of these, and never an earlier one
    for step in [*steps, "session"]:
        if isinstance(step, int):
            adjust_to(policy, step)
            decided.append(step or 1)
        elif step == "session":
            begin_session(policy, decided[at])
        else:
            at = min(at + int(step.split()[1]), len(decided) - 1)
        now = unadjusted(spec_of(policy, "web"))
        assert (now.request, now.limit, now.memory_limit, now.source) == (
            *(own.request, own.limit, own.memory_limit),
            own.source,
        )
