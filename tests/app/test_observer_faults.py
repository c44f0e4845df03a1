"""A fault of one observer, or of one timer, loses no decision and no session."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.config import PolicyConfig
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event
from nri_resmgr.scenario.read import document_of
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ResmgrError
from tests.waiting import until


class Faulty(DecisionObserver):
    """Fails whatever it observes."""

    def decided(self, event: Event, decision: PolicyDecision) -> None:  # noqa: ARG002 - it fails
        raise MemoryError

    def refused(self, subject: Subject, error: ResmgrError) -> None:  # noqa: ARG002 - as above
        raise MemoryError

    def ineffective(self, title: str, why: str) -> None:  # noqa: ARG002 - as above
        raise MemoryError

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - as above
        raise MemoryError


class FaultySessions(Observer):
    """Fails whatever it observes of sessions."""

    def registered(self, runtime: RuntimeInfo) -> None:  # noqa: ARG002 - it fails
        raise MemoryError

    def synchronized(self) -> None:
        raise MemoryError

    def ended(self, why: str) -> None:  # noqa: ARG002 - as above
        raise MemoryError

    def called(self, method: str) -> None:  # noqa: ARG002 - as above
        raise MemoryError

    def answered(self, method: str, seconds: float, code: int) -> None:  # noqa: ARG002 - as above
        raise MemoryError


class Witness(Observer):
    """Lists what it observes of sessions."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def registered(self, runtime: RuntimeInfo) -> None:  # noqa: ARG002 - listed only
        self.seen.append("registered")

    def synchronized(self) -> None:
        self.seen.append("synchronized")

    def ended(self, why: str) -> None:  # noqa: ARG002 - as above
        self.seen.append("ended")

    def called(self, method: str) -> None:  # noqa: ARG002 - as above
        self.seen.append("called")

    def answered(self, method: str, seconds: float, code: int) -> None:  # noqa: ARG002 - as above
        self.seen.append("answered")


class Counting(DecisionObserver):
    """Counts decisions and configurations."""

    def __init__(self) -> None:
        self.decisions = self.configurations = 0

    def decided(self, event: Event, decision: PolicyDecision) -> None:  # noqa: ARG002 - counted only
        self.decisions += 1

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - as above
        self.configurations += 1


async def test_the_other_observers_still_observe() -> None:
    counting = Counting()
    observers = [Faulty(), counting]
    policy = ResourcePolicy(parse_spec("1s4c1t"), observers=observers)
    with capture_logs() as lines:
        policy.synchronize((), ())
        policy.create_container(Pod(id="p"), Container(id="a", name="a"))
        change_machine(policy, parse_spec("1s2c1t"))
        await asyncio.sleep(0.01)

    assert counting.decisions >= 2
    assert counting.configurations == 1
    failed = [line for line in lines if line["event"] == "observer.failed"]
    assert {line["observer"] for line in failed} == {"Faulty"}
    assert len(failed) == counting.decisions + counting.configurations


def test_the_other_observers_of_sessions_still_observe() -> None:
    observers, witness = DaemonObservers(counts=True, traces=False), Witness()
    observers.add(FaultySessions())
    observers.add(witness)
    with capture_logs() as lines:
        observers.registered(RuntimeInfo())
        observers.called("StopContainer")
        observers.answered("StopContainer", 0.001, 0)
        observers.synchronized()
        observers.ended("end of file")

    expected = ["registered", "called", "answered", "synchronized", "ended"]
    assert witness.seen == expected
    failed = [one["observer"] for one in lines if one["event"] == "observer.failed"]
    assert failed == ["FaultySessions"] * len(expected)


def test_an_annotation_without_effect_is_reported_to_the_other_observers() -> None:
    history = History()
    policy = ResourcePolicy(
        parse_spec("1s4c1t"),
        parse_config(document_of("StaticPolicy")),
        observers=[Faulty(), history],
    )
    soft = {"hide-hyperthreads.resource-policy.nri.io/pod": "true"}
    policy.create_container(Pod(id="p", annotations=soft), Container(id="a", name="a"))

    assert len(list(history.rows_of_kind("annotation.ineffective"))) == 1


async def test_a_timer_that_fails_fires_again() -> None:
    fired = list[Event]()

    def fire(event: Event) -> None:
        fired.append(event)
        if len(fired) == 1:
            raise MemoryError

    timers = Timers(fire, again=0.01)
    with capture_logs() as lines:
        timers.set([Timer(ColdStartEnded("a"), 0)])
        await until(lambda: len(fired) == 2)
        await asyncio.sleep(0.05)

    assert fired == [ColdStartEnded("a")] * 2
    assert [line["event"] for line in lines] == ["timer.failed"]
