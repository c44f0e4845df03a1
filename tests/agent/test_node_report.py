"""The status of a node says what counts, whether it is in force, and why not."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.agent.choice import (
    Ambiguous,
    Choice,
    Chosen,
    ConfigObject,
    Nothing,
    Waiting,
)
from nri_resmgr.agent.daemon_state import (
    Cpus,
    Daemon,
    DaemonState,
    JudgedAdjustment,
    JudgedAdjustments,
    JudgedObject,
    Manager,
    Runtime,
    Session,
    Verification,
)
from nri_resmgr.agent.node_report import Facts, conditions_of, node_status
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict
from nri_resmgr.values import CpuSet

CONFIG = ConfigObject("BalloonsPolicy", "nri", "default", "uid-1", 3, "77", "")
OTHER = msgspec.structs.replace(CONFIG, kind="StaticPolicy")
STATE = DaemonState(
    daemon=Daemon("1.2.3"),
    runtime=Runtime("containerd", "2.1.9"),
    session=Session("synchronized"),
    policy="BalloonsPolicy",
    cpus=Cpus(
        online=CpuSet.parse("0-7"),
        reserved=CpuSet.parse("0"),
        exclusive=CpuSet.parse("2-3"),
        shared=CpuSet.parse("1,4-7"),
    ),
    verification=Verification({"as-decided": 4}),
)
FACTS = Facts(Chosen(CONFIG), CONFIG, Verdict(Outcome.ACCEPTED), STATE)
NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"


def test_a_working_node_reports_the_object_that_configures_it() -> None:
    status = node_status(FACTS, {}, 1, NOW)

    assert status["observed"] == {
        "kind": "BalloonsPolicy",
        "namespace": "nri",
        "name": "default",
        "uid": "uid-1",
        "generation": 3,
    }
    assert (status["observedGeneration"], status["policy"]) == (1, "BalloonsPolicy")
    assert (status["mode"], status["runtime"]) == ("Enforce", "containerd 2.1.9")
    assert status["cpus"] == {
        "online": 8,
        "reserved": 1,
        "exclusive": 2,
        "shared": 5,
        "isolated": 0,
        "idle": 0,
    }
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("Ready", "True"),
        ("ConfigurationApplied", "True"),
        ("RuntimeConnected", "True"),
        ("KubeletCompatible", "True"),
        ("Drift", "False"),
    ]


@pytest.mark.parametrize(
    ("choice", "verdict", "status", "reason", "message"),
    [
        pytest.param(
            Chosen(CONFIG),
            Verdict(Outcome.REJECTED, "$.spec.x: unknown key"),
            False,
            "Rejected",
            "$.spec.x: unknown key",
            id="a mistake in it",
        ),
        pytest.param(
            Chosen(CONFIG),
            Verdict(Outcome.IGNORED, "--config-file is set"),
            False,
            "Overridden",
            "--config-file is set",
            id="a file of the node has precedence",
        ),
        pytest.param(
            Chosen(CONFIG),
            Verdict(Outcome.TRIED, "it would change no container"),
            True,
            "DryRun",
            "it would change no container",
            id="tried out",
        ),
        pytest.param(
            Chosen(CONFIG), PENDING, None, "Pending", "not judged yet", id="not judged"
        ),
        pytest.param(
            Ambiguous((CONFIG, OTHER)),
            Verdict(Outcome.ACCEPTED),
            False,
            "SeveralKinds",
            str(Ambiguous((CONFIG, OTHER))),
            id="two kinds",
        ),
        pytest.param(
            Waiting("a Role is missing"),
            Verdict(Outcome.ACCEPTED),
            None,
            "NotRead",
            "a Role is missing",
            id="not readable",
        ),
        pytest.param(
            Nothing(("node.a", "default")),
            Verdict(Outcome.ACCEPTED),
            True,
            "ConfigurationGone",
            "none of node.a, default exists any more; BalloonsPolicy nri/default stays "
            "in force",
            id="deleted",
        ),
    ],
)
def test_whether_the_configuration_is_in_force(
    choice: Choice,
    verdict: Verdict,
    status: bool | None,  # noqa: FBT001 - a row of the table
    reason: str,
    message: str,
) -> None:
    facts = msgspec.structs.replace(FACTS, choice=choice, verdict=verdict)
    ready, applied, *_ = conditions_of(facts)

    assert (applied.is_true, applied.reason, applied.message) == (
        status,
        reason,
        message,
    )
    assert ready.is_true == status


def test_a_node_that_was_never_configured_is_ready() -> None:
    nothing = Nothing(("node.a", "default"))
    facts = Facts(nothing, None, PENDING, STATE)
    ready, applied, *_ = conditions_of(facts)

    assert (ready.is_true, applied.is_true) == (True, True)
    assert applied.reason == "NoConfiguration"
    assert "observed" not in node_status(facts, {}, 1, NOW)


def test_an_unreachable_daemon_leaves_everything_unknown() -> None:
    facts = msgspec.structs.replace(
        FACTS, state=None, why_no_state="no socket", verdict=PENDING
    )
    conditions = conditions_of(facts)

    assert [one.status for one in conditions] == ["Unknown"] * 5
    assert [one.message for one in conditions[:-1]] == [
        *("no socket", "no socket", "no socket", "no socket"),
    ]


def test_problems_beside_the_configuration_are_shown() -> None:
    state = msgspec.structs.replace(
        STATE,
        session=Session("disconnected", "end of file"),
        kubelet=(Manager("the kubelet's static CPU manager writes CPU sets, too"),),
        verification=Verification({"as-decided": 4, "drifted": 2}),
    )
    found = conditions_of(msgspec.structs.replace(FACTS, state=state))

    assert [(one.kind, one.is_true, one.message) for one in found] == [
        ("Ready", False, "end of file"),
        ("ConfigurationApplied", True, "BalloonsPolicy nri/default is in force"),
        ("RuntimeConnected", False, "end of file"),
        (
            "KubeletCompatible",
            False,
            "the kubelet's static CPU manager writes CPU sets, too",
        ),
        ("Drift", True, "cgroups of 2 containers differ from what was decided"),
    ]


HERE = JudgedAdjustment(JudgedObject("more"), "accepted")
THERE = JudgedAdjustment(JudgedObject("there"), "ignored")
REFUSED = {"web": "cache: conflicting adjustments for web:web: more,wide"}


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        pytest.param(None, None, id="not judged"),
        pytest.param(JudgedAdjustments(), None, id="none"),
        pytest.param(JudgedAdjustments(objects=(THERE,)), None, id="for other nodes"),
        pytest.param(
            JudgedAdjustments(objects=(HERE, THERE)),
            (True, "Accepted", "in force: more"),
            id="in force",
        ),
        pytest.param(
            JudgedAdjustments(objects=(HERE, THERE), errors=REFUSED),
            (False, "Rejected", f"web: {REFUSED['web']}"),
            id="rejected",
        ),
        pytest.param(
            # Of a container that has none any more: no room for what it had before.
            JudgedAdjustments(objects=(THERE,), errors={"web": "no room"}),
            (False, "Rejected", "web: no room"),
            id="gone, and no room",
        ),
        pytest.param(
            JudgedAdjustments(objects=(HERE,), problem="too large"),
            (False, "NotRead", "too large"),
            id="not read",
        ),
    ],
)
def test_the_own_object_of_a_node_has_the_verdict_on_adjustments(
    judged: JudgedAdjustments | None, expected: tuple[bool, str, str] | None
) -> None:
    facts = msgspec.structs.replace(FACTS, adjustments=judged)
    ready, *others = conditions_of(facts)
    found = [one for one in others if one.kind == "AdjustmentsApplied"]
    shown = [(one.is_true, one.reason, one.message) for one in found]

    assert shown == ([] if expected is None else [expected])
    assert ready.is_true is True


def test_what_is_adjusted_is_unknown_while_the_daemon_does_not_answer() -> None:
    judged = JudgedAdjustments(objects=(HERE,))
    facts = msgspec.structs.replace(
        FACTS, state=None, why_no_state="no socket", adjustments=judged
    )
    by_kind = {one.kind: one for one in conditions_of(facts)}
    adjusted = by_kind["AdjustmentsApplied"]

    assert (adjusted.is_true, adjusted.reason) == (None, "DaemonUnreachable")
    assert adjusted.message == "no socket"


def test_a_node_without_nri_says_so() -> None:
    state = msgspec.structs.replace(STATE, session=Session("disconnected"))
    found = conditions_of(msgspec.structs.replace(FACTS, state=state))

    by_kind = {one.kind: one for one in found}
    connected, ready = by_kind["RuntimeConnected"], by_kind["Ready"]
    assert (connected.is_true, connected.reason) == (False, "NotConnected")
    assert connected.message == "no session with the runtime; is NRI enabled there?"
    assert (ready.is_true, ready.message) == (False, connected.message)


def test_the_time_of_transition_changes_with_the_status_only() -> None:
    first = node_status(FACTS, {}, 1, NOW)
    state = msgspec.structs.replace(STATE, session=Session("disconnected"))
    changed = msgspec.structs.replace(FACTS, state=state)
    second = node_status(changed, first, 1, LATER)

    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times == {
        "Ready": LATER,
        "ConfigurationApplied": NOW,
        "RuntimeConnected": LATER,
        "KubeletCompatible": NOW,
        "Drift": NOW,
    }
