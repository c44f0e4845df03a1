"""Histories in which a restart once moved, refused or swapped containers.

Most were found by the laws of `tests/laws/test_old_checkpoints.py`, and shortened.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet, QosClass
from tests.laws.histories import History, policy_of
from tests.laws.history_draws import DOCUMENTS, RESERVED
from tests.laws.restarts import AGES, check_restarts

WIDE_AND_NEAR: Final = (
    f"{{{RESERVED}, balloonTypes: [{{name: wide, shareIdleCPUsInSame: system}},"
    " {name: near, preferNewBalloons: true, shareIdleCPUsInSame: numa}]}"
)


def guaranteed(request: int) -> dict[str, Any]:
    """Return amounts of a Guaranteed container."""
    return {"request": MilliCpus(request), "limit": MilliCpus(request)}


def one(name: str, request: int) -> ContainerSpec:
    """Return a Guaranteed container in a pod of its own."""
    amounts = guaranteed(request)
    return ContainerSpec(id=name, pod=name, qos=QosClass.GUARANTEED, **amounts)


def burstable(name: str, request: int, created: int = 0) -> ContainerSpec:
    """Return a Burstable container in a pod of its own."""
    amount, qos = MilliCpus(request), QosClass.BURSTABLE
    return ContainerSpec(id=name, pod=name, qos=qos, request=amount, created=created)


def in_balloon(kind: str, container: ContainerSpec) -> ContainerSpec:
    """Return a container that asks for a balloon of a type."""
    return replace(container, preferences=Preferences(balloon=kind))


def sharing(level: str) -> str:
    """Return a document with one type of balloons, which share idle CPUs."""
    return (
        f"{{{RESERVED}, balloonTypes: [{{name: a, namespaces: ['*'],"
        f" preferNewBalloons: true, shareIdleCPUsInSame: {level}}}]}}"
    )


def below_minimum(more: str = "") -> History:
    """Run two balloons of two CPUs each, of which the second loses one of them."""
    types = (
        f"[{{name: own, namespaces: ['*'], preferNewBalloons: true, minCPUs: 2{more}}}]"
    )
    spec = f"{{{RESERVED}, balloonTypes: {types}}}"
    before, after = machines = ("1s1n5c1t", "1s1n5c1t offline=3")
    history = History(policy_of("BalloonsPolicy", spec, before), machines)
    for name in ("log", "web"):
        history.create(ContainerSpec(id=name, pod=name, qos=QosClass.BEST_EFFORT))
    history.switch(policy_of("BalloonsPolicy", spec, after))
    assert [len(one.cpus) for one in history.pins.values()] == [2, 1]
    return history


def test_a_balloon_that_moved_on_stays_where_it_is() -> None:
    history = History(
        policy_of("BalloonsPolicy", DOCUMENTS["BalloonsPolicy"][0], "1s4n4c1t")
    )
    history.create(one("web", 1000))
    history.create(one("db", 3000))
    history.stop("db")
    history.resize("web", guaranteed(2000))
    history.resize("web", guaranteed(1000))

    check_restarts(history)


def test_a_container_that_shrank_twice_keeps_its_cpu() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 5000))
    history.resize("web", guaranteed(4000))
    history.resize("web", guaranteed(1000))

    check_restarts(history)


def test_cpus_released_by_a_resize_go_to_the_next_container() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 5000))
    history.create(one("log", 500))
    history.resize("web", guaranteed(3000))
    history.create(one("db", 2000))

    check_restarts(history)


def test_a_resize_for_which_others_fell_back_was_decided() -> None:
    spec = DOCUMENTS["TopologyAwarePolicy"][2]
    history = History(policy_of("TopologyAwarePolicy", spec, "1s4n1c1t memory=4Gi"))
    history.create(ContainerSpec(id="log", qos=QosClass.BEST_EFFORT))
    history.create(one("web", 2500))
    history.resize("web", guaranteed(3000))
    history.create(replace(one("db", 3000), created=1))
    # It fell back, but has its memory where that was.
    assert history.pins["log"].cpus == CpuSet.parse("0")
    assert len(history.pins["log"].mems) == 1

    check_restarts(history)


def test_a_resized_container_beside_one_that_fell_back_stays() -> None:
    spec = DOCUMENTS["TopologyAwarePolicy"][2]
    history = History(policy_of("TopologyAwarePolicy", spec, "1s1n4c1t"))
    history.create(burstable("web", 2000))
    history.resize("web", {"request": MilliCpus(2500)})
    history.create(replace(one("db", 3000), created=1))
    # It runs on as many CPUs as if it owned them, but "web" is known to share these.
    assert history.pins["db"].cpus == history.pins["web"].cpus == CpuSet.parse("1-3")

    assert history.restart(2).why == {"web": Rule.KEPT, "db": Rule.FELL_BACK}
    check_restarts(history)


def test_a_container_that_fell_back_gets_no_cpus_of_resized_ones() -> None:
    spec = DOCUMENTS["TopologyAwarePolicy"][2]
    policy = policy_of("TopologyAwarePolicy", spec, "1s2n4c1t")
    history = History(policy, by_partition=True)
    history.create(burstable("web", 6000))
    history.create(replace(one("db", 2000), created=1))
    history.create(burstable("log", 4000, created=2))
    history.resize("web", {"request": MilliCpus(3000)})
    # A partition keeps it off those of "db", so that its record is as it was.
    assert history.record["log"].cpus == CpuSet.parse("1-7")

    kept = {"web": Rule.KEPT, "db": Rule.KEPT, "log": Rule.FELL_BACK}
    assert history.restart(1).why == kept
    check_restarts(history)


def test_an_undecided_resize_is_decided_at_the_start() -> None:
    history = History(policy_of("TopologyAwarePolicy", "{}", "1s4n4c1t"))
    history.create(one("web", 2000))
    history.create(one("log", 2000))
    before = dict(history.pins)
    history.there["web"] = one("web", 3000)
    history.there["log"] = one("log", 1000)
    after = history.restart(0)

    assert before["web"].cpus < after.pins["web"].cpus
    assert after.pins["log"].cpus < before["log"].cpus
    assert [len(after.pins[key].cpus) for key in ("web", "log")] == [3, 1]


def test_a_container_that_overflowed_to_reserved_cpus_keeps_its_exclusive_one() -> None:
    spec = DOCUMENTS["StaticPlusPolicy"][0]
    history = History(policy_of("StaticPlusPolicy", spec, "1s2n4c1t"))
    # Of equal age, so that their names have the order in which they overflow.
    history.create(one("api", 1000))
    history.create(one("batch", 3000))
    history.resize("api", guaranteed(500))
    history.create(one("bus", 500))
    history.create(one("db", 1500))
    history.create(one("dns", 2000))

    check_restarts(history)


def test_a_container_without_a_list_does_not_get_that_of_a_younger_one() -> None:
    spec = DOCUMENTS["StaticPoolsPolicy"][0]
    history = History(policy_of("StaticPoolsPolicy", spec, "1s1n8c1t"))
    asks = PoolRequest(pool="x")
    for name in ("api", "db"):
        history.create(replace(one(name, 1000), pool_request=asks))
    # It came while no daemon ran, and was given no list.
    history.create_unseen(replace(one("log", 1000), pool_request=asks, created=1))
    history.switch(history.policy)
    history.stop("db")
    history.create(replace(one("web", 1000), pool_request=asks, created=2))
    assert history.policy.exclusive_cpus(history.state).keys() == {"api", "web"}

    check_restarts(history)


def test_a_container_alone_on_the_shared_cpus_has_its_own_among_them() -> None:
    spec = DOCUMENTS["StaticPlusPolicy"][0]
    history = History(policy_of("StaticPlusPolicy", spec, "1s1n6c1t isolated=4-5"))
    history.create(one("db", 2000))
    history.create(burstable("web", 2500, created=1))
    history.stop("db")
    history.resize("web", {"request": MilliCpus(1500)})
    assert history.pins["web"].cpus == CpuSet.parse("1-3")

    check_restarts(history)


def test_memory_that_a_container_beside_idle_cpus_got_is_not_taken_back() -> None:
    machine = "4s4c1t around=2 memory=4Gi"
    history = History(policy_of("BalloonsPolicy", sharing("core"), machine))
    history.create(burstable("web", 500))
    history.create(burstable("db", 5000, created=1))
    history.resize("web", {"request": MilliCpus(5000)})
    history.resize("web", {"request": MilliCpus(500)})
    assert len(history.pins["web"].mems) > 1

    check_restarts(history)


def test_a_balloon_that_shares_the_idle_cpus_of_two_nodes_still_does() -> None:
    machine = "2s2n2c2t memory=4Gi"
    history = History(policy_of("BalloonsPolicy", sharing("numa"), machine))
    for number, name in enumerate(("api", "bus", "db", "dns")):
        history.create(burstable(name, 3000, created=number))
    history.stop("dns")
    history.create(burstable("web", 200, created=4))
    history.resize("web", {"request": MilliCpus(3000)})
    assert history.pins["web"].cpus == CpuSet.parse("6-7,11,14-15")

    check_restarts(history)


def test_a_balloon_has_the_cpus_that_others_do_not_share() -> None:
    types = (
        "[{name: wide, shareIdleCPUsInSame: system},"
        " {name: core, shareIdleCPUsInSame: core}]"
    )
    spec = f"{{{RESERVED}, balloonTypes: {types}}}"
    history = History(policy_of("BalloonsPolicy", spec, "1s1n3c2t"))
    history.create(burstable("old", 3000))
    history.create(in_balloon("wide", burstable("log", 500, created=1)))
    history.create(in_balloon("core", burstable("web", 500, created=2)))
    history.stop("old")
    # CPU 2 is in the core of "web", which would share it if it were idle.
    assert history.pins["log"].cpus == CpuSet.parse("1-4")
    assert history.pins["web"].cpus == CpuSet.parse("5")

    check_restarts(history)


def test_a_balloon_that_shares_idle_cpus_has_its_present_ones() -> None:
    history = History(policy_of("BalloonsPolicy", WIDE_AND_NEAR, "1s1n8c1t"))
    history.create(in_balloon("near", burstable("web", 1500)))
    history.create(burstable("old", 3000, created=1))
    history.create(in_balloon("wide", burstable("log", 500, created=2)))
    history.stop("old")
    # It takes another CPU, and leaves the one that it had: both times it runs on both.
    history.resize("log", {"request": MilliCpus(2000)})
    history.resize("log", {"request": MilliCpus(500)})

    check_restarts(history)


def test_a_balloon_leaves_the_cpus_that_two_share_by_now() -> None:
    history = History(policy_of("BalloonsPolicy", WIDE_AND_NEAR, "1s2n4c1t"))
    history.create(in_balloon("near", burstable("web", 200)))
    history.create(in_balloon("wide", burstable("log", 500, created=1)))
    before = history.pins["web"].cpus
    history.resize("log", {"request": MilliCpus(3000)})
    history.resize("log", {"request": MilliCpus(500)})
    history.create(in_balloon("wide", burstable("db", 500, created=2)))
    assert before < history.pins["web"].cpus == CpuSet.parse("1-3")

    check_restarts(history)


def test_containers_recorded_on_exclusive_cpus_of_others_have_their_own() -> None:
    history = History(
        policy_of("BalloonsPolicy", sharing("numa"), "1s1n5c1t"), by_partition=True
    )
    history.create(burstable("log", 200))
    history.create(burstable("web", 1000, created=1))
    history.create(replace(one("db", 2000), created=2))
    assert history.record["web"].cpus == CpuSet.parse("2-4")
    assert history.pins["db"].cpus == CpuSet.parse("3-4")

    check_restarts(history)


def test_a_balloon_leaves_cpus_that_are_exclusive_to_a_later_container() -> None:
    policy = policy_of("BalloonsPolicy", WIDE_AND_NEAR, "1s4n4c1t")
    history = History(policy, by_partition=True)
    history.create(burstable("old", 1000))
    history.create(in_balloon("wide", burstable("log", 2000, created=1)))
    history.create(in_balloon("wide", burstable("bus", 1000, created=2)))
    history.create(in_balloon("wide", burstable("api", 5000, created=3)))
    history.stop("api")
    history.create(in_balloon("near", replace(one("web", 2000), created=4)))
    # The balloon of "log" had CPUs 2-4, and has 4-6. A partition keeps it off those of
    # "web", so that its record is as it was.
    assert history.pins["web"].cpus == CpuSet.parse("2-3")
    assert history.record["log"].cpus == CpuSet.parse("2-15")

    check_restarts(history)


def test_a_container_does_not_give_way_to_a_minimum_that_was_not_there() -> None:
    types = "[{name: own, minBalloons: 1, minCPUs: 2}]"
    spec = f"{{{RESERVED}, balloonTypes: {types}}}"
    before, after = machines = ("1s1n4c1t", "1s1n4c1t offline=2")
    history = History(policy_of("BalloonsPolicy", spec, before), machines)
    history.create(ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT))
    history.switch(policy_of("BalloonsPolicy", spec, after))

    check_restarts(history)


def test_an_empty_balloon_leaves_cpus_that_containers_run_on() -> None:
    machine, types = "1s2n4c1t", "[{name: own, minBalloons: 1, minCPUs: 2}]"
    spec = f"{{{RESERVED}, balloonTypes: {types}}}"
    history = History(policy_of("BalloonsPolicy", f"{{{RESERVED}}}", machine))
    history.create(ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.create(burstable("web", 2000, created=1))
    history.create(burstable("db", 5000, created=2))
    history.switch(policy_of("BalloonsPolicy", spec, machine))
    # Without "log" on CPU 1 this would be one of the empty balloon's, as in a state
    # without containers, which the checkpoint of another policy is.
    assert history.pins["log"].cpus == CpuSet.parse("1,4-7")

    assert all(history.restart(age).pins == history.pins for age in AGES)
    check_restarts(history)


def test_a_container_that_fell_back_gets_no_room_of_a_resize() -> None:
    machine = "1s4n4c1t offline=5,9"
    spec = f"{{{RESERVED}, balloonTypes: [{{name: own}}]}}"
    history = History(policy_of("BalloonsPolicy", spec, machine))
    history.create(one("bus", 500))
    history.create(replace(one("web", 2000), created=1))
    history.create(replace(one("old", 2000), created=2))
    history.create(replace(one("log", 5000), created=3))
    history.create(in_balloon("own", replace(one("db", 1000), created=4)))
    history.resize("web", guaranteed(2500))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.resize("db", guaranteed(3000))
    history.create(replace(one("api", 2500), created=5))
    history.create(in_balloon("own", replace(one("dns", 1000), created=6)))
    history.switch(policy_of("BalloonsPolicy", spec, machine))
    history.stop("old")
    # With the 2 CPUs of "web" in the checkpoint, "api" would fit in beside it.
    assert history.why["api"] is history.why["dns"] is Rule.FELL_BACK

    check_restarts(history, (6, 7, 8, 9))


def test_a_balloon_keeps_cpus_on_which_containers_that_came_later_run() -> None:
    machine = "1s1n4c1t"
    types = "[{name: own, preferNewBalloons: true, shareIdleCPUsInSame: core}]"
    spec = f"{{{RESERVED}, balloonTypes: {types}}}"
    history = History(policy_of("BalloonsPolicy", spec, machine))
    history.create(one("web", 1500))
    history.create(burstable("old", 1000, created=1))
    history.stop("old")
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.create(replace(one("db", 2000), created=2))
    log = ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT, created=3)
    history.create(in_balloon("own", log))
    history.resize("web", guaranteed(2000))
    history.switch(policy_of("BalloonsPolicy", spec, machine))
    # With the two CPUs that "web" needs, the third one would be a balloon of "log".
    assert {str(one.cpus) for one in history.pins.values()} == {"1-3"}

    assert history.restart(6).pins == history.pins
    check_restarts(history)


def test_a_balloon_that_shares_keeps_cpus_on_which_one_runs_that_fell_back() -> None:
    machine = "1s1n4c1t"
    before, after = (
        f"{{{RESERVED}, balloonTypes: [{{name: own{more}}}]}}"
        for more in ("", ", shareIdleCPUsInSame: package")
    )
    history = History(policy_of("BalloonsPolicy", before, machine))
    history.create(in_balloon("own", burstable("web", 500)))
    history.create(in_balloon("own", replace(one("old", 2000), created=1)))
    history.stop("old")
    history.create(in_balloon("own", replace(one("api", 2000), created=2)))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.create(burstable("log", 200, created=3))
    history.resize("web", {"request": MilliCpus(1000)})
    history.switch(policy_of("BalloonsPolicy", after, machine))
    assert history.why["log"] is Rule.FELL_BACK

    # When "old" ran. A balloon of "log" would leave no CPU for what "web" asks for.
    restarted = history.restart(6)
    assert restarted.pins == history.pins
    assert not restarted.refused
    check_restarts(history)


def test_a_balloon_gets_its_new_minimum_where_its_container_runs() -> None:
    # Its CPUs are not picked in the order of their numbers.
    machine = "8s1n2c1t around=4 emulated=3"
    before, after = (
        f"{{{RESERVED}, balloonTypes: [{{name: own, {more}}}, {{name: other}}]}}"
        for more in ("shareIdleCPUsInSame: system", "minCPUs: 2")
    )
    history = History(policy_of("BalloonsPolicy", before, machine))
    history.create(in_balloon("own", burstable("log", 200)))
    history.create(burstable("db", 5000, created=1))
    history.resize("db", {"request": MilliCpus(500)})
    history.switch(policy_of("BalloonsPolicy", after, machine))
    history.create(in_balloon("other", burstable("web", 200, created=2)))
    assert history.pins["log"].cpus == CpuSet.parse("1,7")

    check_restarts(history)


def test_memory_that_comes_is_for_those_that_lack_some() -> None:
    before = "1s1n8c1t memory=8Gi"
    machines = before, f"{before} cxl=1x4Gi:movable"
    first, second = (
        policy_of("BalloonsPolicy", f"{{{RESERVED}}}", machine) for machine in machines
    )
    history, size = History(first, machines), Bytes(3 << 30)
    for number, name in enumerate(("api", "db", "web")):
        asks = replace(one(name, 200), created=number)
        history.create(replace(asks, memory_request=size, memory_limit=size))
    history.switch(second)
    assert history.pins["web"].mems == NodeSet.parse("0-1")

    check_restarts(history)


def test_a_container_that_fell_back_has_the_cpus_that_others_left() -> None:
    machine = "1s1n8c1t"
    before, after = (
        f"{{{RESERVED}, balloonTypes: [{{name: a}}, {{name: b, {more}}}]}}"
        for more in ("preferNewBalloons: true", "maxCPUs: 4")
    )
    # Only those that run already fall back; a new one is refused.
    history = History(policy_of("NonePolicy", "{}", machine))
    history.create(in_balloon("a", one("api", 3000)))
    for number, name in enumerate(("log", "bus"), 1):
        best_effort = ContainerSpec(name, name, qos=QosClass.BEST_EFFORT)
        history.create(in_balloon("b", replace(best_effort, created=number)))
    history.create(replace(one("old", 1500), created=3))
    history.create(in_balloon("b", replace(one("db", 2000), created=4)))
    history.switch(policy_of("BalloonsPolicy", before, machine))
    assert history.why["db"] is Rule.FELL_BACK
    history.stop("old")
    history.switch(policy_of("BalloonsPolicy", after, machine))
    # With "log" it would have as many CPUs, but others.
    assert history.pins["db"].cpus == CpuSet.parse("6-7")

    check_restarts(history)


def test_isolated_cpus_are_a_balloon_s_own() -> None:
    machine = "1s1n6c1t isolated=4-5"
    history = History(policy_of("BalloonsPolicy", sharing("system"), machine))
    history.create(burstable("old", 2000))
    history.create(burstable("web", 3000, created=1))
    history.stop("old")
    assert history.pins["web"].cpus == CpuSet.parse("1-5")

    check_restarts(history)


def test_a_balloon_below_its_minimum_keeps_its_container() -> None:
    check_restarts(below_minimum(", minBalloons: 1"))


def test_a_balloon_below_its_minimum_gets_cpus_that_another_leaves() -> None:
    history = below_minimum()
    history.stop("log")
    assert len(history.pins["web"].cpus) == 2

    check_restarts(history)


@pytest.mark.parametrize("kind", ["StaticPolicy", "TopologyAwarePolicy"])
def test_former_places_are_the_same_in_any_order(kind: str) -> None:
    history = History(policy_of(kind, DOCUMENTS[kind][0], "1s4n4c1t"))
    for name in ("web", "log", "api", "db"):
        history.create(replace(one(name, 1000), pod="shop", slot=name))
    for name in ("web", "log", "api"):
        history.stop(name)

    check_restarts(history)


def test_a_resize_beside_exclusive_cpus_of_a_burstable_container_was_decided() -> None:
    spec = DOCUMENTS["StaticPlusPolicy"][0]
    policy = policy_of("StaticPlusPolicy", spec, "1s4n4c1t")
    history = History(policy, by_partition=True)
    history.create(burstable("web", 500))
    history.create(burstable("log", 500, created=1))
    history.resize("web", {"request": MilliCpus(1500)})
    history.create(burstable("db", 3000, created=2))
    # A partition keeps "web" off those of "db", so that its record is as it was.
    assert history.record["web"].cpus == CpuSet.parse("1-15")
    assert history.pins["web"].cpus == CpuSet.parse("1-3,7-15")

    check_restarts(history)


def test_the_kernel_decides_on_cpus_that_came_later() -> None:
    kind, spec = "BalloonsPolicy", DOCUMENTS["BalloonsPolicy"][0]
    before, after = machines = ("1s1n6c1t offline=1-3", "1s1n6c1t")
    history = History(policy_of(kind, spec, before), machines, is_behind=True)
    history.switch(policy_of(kind, spec, after))
    history.create(in_balloon("a", one("web", 2000)))
    history.create(in_balloon("a", replace(one("db", 1000), created=1)))
    history.resize("web", guaranteed(1000))
    assert history.record["db"].cpus == CpuSet.parse("1-3")
    assert history.pins["db"].cpus == CpuSet.parse("1-2")

    check_restarts(history, (0,))


def test_a_container_that_fell_back_and_stays_is_not_reported_as_kept() -> None:
    spec, machine = DOCUMENTS["DynamicPoolsPolicy"][0], "1s2n4c1t"
    dynamic = policy_of("DynamicPoolsPolicy", spec, machine)
    history = History(dynamic)
    history.create(one("db", 1000))
    history.create(replace(one("web", 1000), namespace="web", created=1))
    history.create(replace(one("log", 1000), created=2))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.resize("log", guaranteed(6000))
    before = dict(history.pins)
    history.switch(dynamic)
    assert history.pins == before
    assert history.why["log"] is Rule.FELL_BACK

    check_restarts(history)


def test_a_container_that_fell_back_owns_no_cpu_that_another_shares() -> None:
    kind, (spec, _, shared) = "TopologyAwarePolicy", DOCUMENTS["TopologyAwarePolicy"]
    before, after = machines = ("1s2n4c1t", "1s2n4c1t offline=5")
    history = History(policy_of(kind, spec, before), machines)
    history.create(one("old", 1000))
    history.create(burstable("web", 1000, created=1))
    for number in range(2, 7):
        history.create(replace(one(f"db-{number}", 1000), created=number))
    history.switch(policy_of(kind, shared, before))
    history.create(replace(one("late", 1000), created=7))
    history.stop("old")
    history.switch(policy_of(kind, spec, after))
    # Without CPU 5 the container on it is where "web" is, on one CPU as well.
    assert history.pins["db-3"].cpus == history.pins["web"].cpus == CpuSet.of(7)
    assert history.exclusive()["late"] == CpuSet.of(4)

    check_restarts(history, range(5))


def test_shared_cpus_show_that_a_container_moved_to_another_pool() -> None:
    kind, (spec, *_) = "TopologyAwarePolicy", DOCUMENTS["TopologyAwarePolicy"]
    before, after = machines = ("1s2n4c1t", "1s2n4c1t offline=5")
    history = History(policy_of(kind, spec, before), machines)
    history.create(one("old", 5000))
    history.create(burstable("web", 1000, created=1))
    history.resize("web", {"request": MilliCpus(2000)})
    for number in (2, 3):
        name = f"log-{number}"
        batch = ContainerSpec(id=name, pod=name, qos=QosClass.BEST_EFFORT)
        stays = Preferences(strict_hints=True)  # else it would make way for "db"
        history.create(replace(batch, created=number, preferences=stays))
    history.stop("old")
    history.switch(policy_of("NonePolicy", "{}", before))
    history.create(replace(one("db", 3000), created=4))
    history.switch(policy_of(kind, spec, after))
    assert history.pins["web"].cpus == CpuSet.parse("3,6-7")

    check_restarts(history, range(8))


def test_an_idle_cpu_is_where_no_balloon_that_shares_lacks_it() -> None:
    kinds = (
        "{name: a, shareIdleCPUsInSame: system}, {name: b, shareIdleCPUsInSame: numa}"
    )
    spec = f"{{{RESERVED}, balloonTypes: [{kinds}]}}"
    history = History(policy_of("BalloonsPolicy", spec, "1s2n4c1t l3=2"))
    history.create(in_balloon("a", one("web", 2000)))
    history.create(in_balloon("a", replace(one("db", 3000), created=1)))
    history.resize("web", guaranteed(1000))
    history.create(in_balloon("b", replace(one("api", 2000), created=2)))
    # The idle one of 1-5 is not in the node of "api".
    assert history.pins["web"].cpus == CpuSet.parse("1-5")
    assert history.pins["api"].cpus == CpuSet.parse("6-7")

    check_restarts(history)


def test_memory_nodes_that_are_there_again_are_no_decision() -> None:
    kind, (spec, *_) = "TopologyAwarePolicy", DOCUMENTS["TopologyAwarePolicy"]
    machine = "16s1n0c1t1e around=2 cluster=2 hbm=2x2Gi:movable"
    before, after = machines = (f"{machine} memory=4Gi", f"{machine} memory=6Gi,0,0")
    history = History(policy_of(kind, spec, before), machines)
    history.create(one("web", 5000))
    history.resize("web", guaranteed(1000))
    history.create(replace(one("db", 1000), created=1))
    history.switch(policy_of("NonePolicy", "{}", after))
    history.resize("web", guaranteed(500))
    history.switch(policy_of(kind, spec, after))
    history.switch(policy_of(kind, spec, before))
    assert history.pins["web"].cpus == CpuSet.of(1)

    check_restarts(history, range(8))


def test_a_balloon_has_a_cpu_wherever_it_shares_idle_ones() -> None:
    machine = "4s1n1c2t around=2 emulated=3 offline=4 isolated=7"
    before = f"{{{RESERVED}, balloonTypes: [{{name: a}}]}}"
    after = before.replace("a}", "a, shareIdleCPUsInSame: package}")
    history = History(policy_of("BalloonsPolicy", before, machine))
    web = in_balloon("a", burstable("web", 2500))
    history.create(web)
    history.switch(policy_of("BalloonsPolicy", after, machine))
    history.resize("web", {"request": MilliCpus(1000)})
    history.resize("web", {"request": MilliCpus(2000)})
    # The idle one is in a package of which the balloon has the other CPU.
    assert history.pins["web"].cpus == CpuSet.parse("2-3,6")

    check_restarts(history)


def test_a_container_that_fell_back_owns_no_cpu_of_a_mixed_one() -> None:
    machine = "4s1n1c2t1e around=2 l3=1,1,2 numbering=adjacent offline=4-5,10"
    machine += " isolated=6,9,11"
    kind, (_, _, spec) = "TopologyAwarePolicy", DOCUMENTS["TopologyAwarePolicy"]
    history = History(policy_of(kind, spec, machine))
    history.create(one("web", 2500))
    history.create(replace(one("db", 500), created=1))
    history.create(replace(one("api", 3000), created=2))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.resize("web", guaranteed(1500))
    history.resize("db", guaranteed(2000))
    history.switch(policy_of(kind, spec, machine))
    # "web" has an isolated CPU, and shares those onto which "api" fell back.
    assert history.pins["web"].cpus == CpuSet.parse("1-3,6")
    assert history.pins["api"].cpus == CpuSet.parse("1-3")

    check_restarts(history, range(8))


def test_containers_that_fell_back_stay_where_others_lose_nothing() -> None:
    kind, machine = "BalloonsPolicy", "2s1n4c2t offline=3,11"
    plain, spec, *_ = DOCUMENTS[kind]
    history = History(policy_of(kind, spec, machine))
    batch = ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT, created=1)
    for asked in (
        one("web", 2000),
        batch,
        replace(one("db", 5000), created=2),
        burstable("api", 3000, created=3),
    ):
        history.create(in_balloon("a", asked))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.create(in_balloon("b", replace(one("bus", 2000), created=4)))
    history.create(burstable("old", 1000, created=5))
    history.create(burstable("new", 1000, created=6))
    history.switch(policy_of(kind, plain, machine))
    history.switch(policy_of(kind, spec, machine))
    assert history.pins["old"] == history.pins["new"]
    assert history.exclusive()["web"] == CpuSet.parse("1,9")

    check_restarts(history, range(12))


def test_a_container_without_room_is_not_reported_as_kept() -> None:
    kind, machine = "BalloonsPolicy", "1s2n4c1t l3=2"
    plain = DOCUMENTS[kind][0]
    spec = plain.replace("a}", "a, shareIdleCPUsInSame: numa}")
    history = History(policy_of("NonePolicy", "{}", machine))
    db = in_balloon("a", burstable("db", 2500))
    log = in_balloon("a", burstable("log", 500, created=3))
    batch = burstable("batch", 2000, created=1)
    for asked in (db, batch, replace(one("web", 1000), created=2), log):
        history.create(asked)
    history.switch(policy_of(kind, spec, machine))
    history.switch(policy_of("NonePolicy", "{}", machine))
    history.resize("log", {"request": MilliCpus(2500)})
    history.resize("web", guaranteed(2500))
    history.switch(policy_of(kind, plain, machine))
    # Five CPUs are asked for on three, and four and a half on four.
    assert history.pins["log"].cpus == CpuSet.parse("1-3")
    assert history.why["log"] is history.why["web"] is Rule.FELL_BACK
    history.resize("db", {"request": MilliCpus(1500)})

    check_restarts(history)


def test_a_container_that_grew_is_where_its_balloon_shares_idle_cpus() -> None:
    kind, machine = "BalloonsPolicy", "2s2n2c2t"
    plain = f"{{{RESERVED}, balloonTypes: [{{name: b, maxCPUs: 4}}]}}"
    shares = plain.replace("4}", "4, shareIdleCPUsInSame: l2cache}")
    history = History(policy_of(kind, plain, machine))
    history.create(in_balloon("b", one("web", 1000)))
    history.create(ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT))
    history.create(in_balloon("b", burstable("db", 3000, created=1)))
    history.stop("db")
    history.resize("web", guaranteed(2000))
    history.resize("web", guaranteed(3000))
    history.switch(policy_of(kind, shares, machine))
    check_restarts(history, range(8))


def test_one_that_fell_back_stays_where_there_is_room_for_it_by_now() -> None:
    spec = f"{{{RESERVED}, balloonTypes: [{{name: b, minCPUs: 1}}]}}"
    before, after = machines = ("1s2n4c1t offline=5", "1s2n4c1t")
    history = History(policy_of("StaticPlusPolicy", f"{{{RESERVED}}}", after), machines)
    log = ContainerSpec(id="log", pod="log", qos=QosClass.BEST_EFFORT)
    history.create(in_balloon("b", log))
    history.create(burstable("db", 2500, created=1))
    history.create(replace(one("web", 3000), created=2))
    history.switch(policy_of("BalloonsPolicy", spec, before))
    assert history.why["web"] is Rule.FELL_BACK
    history.stop("db")
    history.switch(policy_of("BalloonsPolicy", spec, after))
    history.create(replace(one("api", 1500), created=3))
    # It came when a CPU was back, on which none of them runs.
    assert history.pins["web"].cpus == history.pins["api"].cpus

    check_restarts(history, range(8))
