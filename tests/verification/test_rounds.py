"""Rounds: drift is found, logged, repaired, and abandoned."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.app.background import repairs
from nri_resmgr.app.verification.verifier import VerificationOptions
from tests.app.arriving import Requests
from tests.verification.fake_host import GRACE, ONLY_TELLS, FakeHost

pytestmark = pytest.mark.slow


LONG_AGO = 0  # for a history, so that no update is recent

# Half of the time suffices on a busy machine, too, to look before something changes.
UNHURRIED = VerificationOptions(0.0, grace=0.4)


def host(root: Path, **more: Any) -> FakeHost:
    """Make one with a container on its own CPUs, and one that shares."""
    made = FakeHost(root, now=lambda: LONG_AGO, **more)
    made.policy.synchronize([], [])
    made.create("web", 2)
    made.create("log", 0.5)
    return made


async def test_an_unchanged_node_is_as_decided(tmp_path: Path) -> None:
    node = host(tmp_path)

    assert await node.round() == {"web": "as-decided", "log": "as-decided"}
    assert node.events() == []


async def test_drift_is_logged_once_and_repaired(tmp_path: Path) -> None:
    node = host(tmp_path)
    before = node.cpus_of("web")
    node.write("web", cpus="0-7", requested="0-7")
    found = await node.round()
    calls, after = list(node.calls), node.cpus_of("web")
    again = await node.round()

    assert found == {"web": "drifted", "log": "as-decided"}
    assert calls == [{"web": before}]
    assert after == before
    assert again == {"web": "as-decided", "log": "as-decided"}
    assert node.events() == [
        ("container.drifted", "web", "cpus"),
        ("drift.cleared", "web", ""),
    ]


async def test_requests_go_first_where_all_containers_differ(tmp_path: Path) -> None:
    node = FakeHost(tmp_path, machine="1s2n8c1t memory=1Ti", now=lambda: LONG_AGO)
    names = [f"log-{number}" for number in range(200)]
    node.policy.synchronize([], [])
    for name in names:
        node.create(name, 0.01)
        node.write(name, cpus="7", requested="7")
    node.policy.observers.finish()
    requests = Requests()
    with requests.arriving():
        found = await node.round()

    assert list(found.values()) == ["drifted"] * len(names)
    # A line of the log takes some 80 calls of functions; 50 are written at once.
    assert requests.most < 40 * len(names)


async def test_without_repairs_it_is_only_logged_and_once(tmp_path: Path) -> None:
    node = host(tmp_path, options=ONLY_TELLS)
    node.write("web", mems="0-1", weight="9999")
    rounds = [(await node.round())["web"] for _ in range(3)]
    node.write("web", mems="")
    await node.round()

    assert rounds == ["drifted"] * 3
    assert node.calls == []
    assert node.events() == [
        ("container.drifted", "web", "mems,shares"),
        ("container.drifted", "web", "mems,shares"),
    ]


async def test_repair_is_abandoned_with_an_error_if_drift_returns(
    tmp_path: Path,
) -> None:
    node = host(tmp_path)
    node.suspects = ["the kubelet's cpu manager has the policy static"]
    for _ in range(repairs.MOST_ATTEMPTS + 3):
        node.write("web", cpus="0-7", requested="0-7")
        await node.round()
    (abandoned,) = node.history.rows_of_kind("drift.abandoned")

    assert len(node.calls) == repairs.MOST_ATTEMPTS
    assert abandoned.why == (
        "shop/web/web may run on CPUs 0-7, but 4-5 was decided: another program wrote "
        "/sys/fs/cgroup/kubepods.slice/cri-containerd-web.scope again after 5 repairs, "
        "so repair is abandoned: the kubelet's cpu manager has the policy static"
    )


async def test_cpus_that_are_contested_are_neither_repaired_nor_abandoned(
    tmp_path: Path,
) -> None:
    node = host(tmp_path)
    node.verification.is_contested = lambda key: key == "web"
    as_decided = await node.round()
    node.write("web", cpus="0-7", requested="0-7")
    overwritten = [await node.round() for _ in range(repairs.MOST_ATTEMPTS + 3)][-1]
    events, calls = node.events(), list(node.calls)
    node.write("web", mems="0-1")
    with_nodes = await node.round()
    node.verification.is_contested = lambda _key: False
    over = await node.round()

    assert as_decided == overwritten == {"web": "contested", "log": "as-decided"}
    assert (events, calls) == ([], [])
    assert with_nodes == {"web": "drifted", "log": "as-decided"}
    assert over == {"web": "as-decided", "log": "as-decided"}
    assert [kind for kind, *_ in node.events()] == [
        "container.drifted",
        "drift.cleared",
    ]


async def test_updates_that_have_no_effect_are_abandoned_too(tmp_path: Path) -> None:
    node = host(tmp_path)
    node.takes = False
    node.write("web", cpus="0-7", requested="0-7")
    for _ in range(repairs.MOST_ATTEMPTS + 3):
        await node.round()

    assert len(node.calls) == repairs.MOST_ATTEMPTS
    assert [kind for kind, *_ in node.events()] == [
        "container.drifted",
        "drift.abandoned",
    ]


async def test_a_container_confined_by_a_cgroup_above_is_logged_but_not_updated(
    tmp_path: Path,
) -> None:
    node = host(tmp_path)
    node.write("web", cpus="4")

    assert (await node.round())["web"] == "confined"
    assert node.calls == []
    assert node.events() == [("container.confined", "web", "cpus")]


async def test_cpus_that_went_offline_are_no_drift(tmp_path: Path) -> None:
    node = host(tmp_path)
    node.set_online("0-3,5-7")
    node.write("web", cpus="5")
    offline = (await node.round())["web"]
    node.set_online("0-7")
    node.write("web", cpus="4-5")
    online = (await node.round())["web"]

    assert (offline, online) == ("offline", "as-decided")
    assert node.calls == []
    assert [kind for kind, *_ in node.events()] == [
        "container.offline",
        "drift.cleared",
    ]


async def test_values_in_force_within_the_grace_period_are_no_drift(
    tmp_path: Path,
) -> None:
    node = host(tmp_path, options=UNHURRIED)
    right = node.cpus_of("web")
    node.write("web", cpus="0-7", requested="0-7")
    loop = asyncio.get_running_loop()

    def come() -> None:
        node.write("web", cpus=right, requested=right)

    loop.call_later(UNHURRIED.grace / 2, come)

    assert (await node.round())["web"] == "as-decided"
    assert node.events() == []


async def test_a_decision_that_changes_meanwhile_is_left_for_the_next_round(
    tmp_path: Path,
) -> None:
    node = host(tmp_path, options=UNHURRIED)
    right = node.cpus_of("log")
    node.takes = False
    node.write("log", cpus="0", requested="0")
    loop = asyncio.get_running_loop()

    def change() -> None:
        node.create("db", 2)
        node.write("log", cpus=right, requested=right)  # the update did not arrive

    loop.call_later(UNHURRIED.grace / 2, change)
    found = await node.round()

    assert found["log"] == "pending"
    assert (await node.round())["log"] == "drifted"


async def test_a_container_with_a_recent_update_is_left_alone(tmp_path: Path) -> None:
    node = FakeHost(tmp_path)
    node.policy.synchronize([], [])
    node.create("web", 2)
    node.write("web", cpus="0-7", requested="0-7")
    await asyncio.sleep(0)  # the history is notified
    at_once = (await node.round())["web"]
    await asyncio.sleep(2 * GRACE)
    later = (await node.round())["web"]

    assert (at_once, later) == ("pending", "drifted")


async def test_a_container_that_does_not_run_has_nothing_to_verify(
    tmp_path: Path,
) -> None:
    node = host(tmp_path)
    node.write("web", cpus="0-7", requested="0-7")
    scope = tmp_path / "sys/fs/cgroup/kubepods.slice/cri-containerd-web.scope"
    (scope / "cgroup.events").write_text("populated 0\n")
    empty = (await node.round())["web"]
    for file in scope.iterdir():
        file.unlink()
    gone = (await node.round())["web"]

    assert (empty, gone) == ("not-running", "not-running")
    assert node.events() == []


@pytest.mark.parametrize(
    "text", [pytest.param("x-y", id="no list"), pytest.param("0-99999", id="no CPUs")]
)
async def test_odd_content_is_logged_once(tmp_path: Path, text: str) -> None:
    node = host(tmp_path)
    node.write("web", cpus=text)
    rounds = [(await node.round())["web"] for _ in range(2)]

    assert rounds == ["unreadable"] * 2
    assert node.events() == [("container.unreadable", "web", "")]
    assert node.calls == []


async def test_many_are_repaired_a_few_at_a_time(tmp_path: Path) -> None:
    node = FakeHost(tmp_path, machine="2s2n4c1t", now=lambda: LONG_AGO)
    node.policy.synchronize([], [])
    names = [f"c{number}" for number in range(2 * repairs.MOST_AT_ONCE + 1)]
    for name in names:
        node.create(name, 0.1)
    for name in names:
        node.write(name, cpus="0", requested="0")
    more = [await node.verification.round() for _ in range(4)]

    assert more == [True, True, False, False]
    assert [len(call) for call in node.calls] == [20, 20, 1]


async def test_findings_are_counted(tmp_path: Path) -> None:
    node = host(tmp_path)
    node.write("web", cpus="0-7", requested="0-7", mems="0-1")
    await node.round()
    (drift,) = [
        dict(one.values)
        for one in node.metrics.series()
        if one.metric.name == "nri_resmgr_drift_total"
    ]

    assert drift == {("cpus",): 1, ("mems",): 1}
    assert node.verification.repairs.sent == 1
