"""Observers of decisions: notified of each, after the reply, in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nri_resmgr.app.observers.observer import DecisionObserver, Subject
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event
from nri_resmgr.stub import Configuration, Container, LinuxPod, Pod, RuntimeInfo
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError, ResmgrError

POD = Pod(id="p", name="pod", namespace="shop", linux=LinuxPod())
CONTAINER = Container(id="c", name="web", pod_sandbox_id="p")
STATIC = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {reservedResources: {cpu: 1}}
"""
STRICT = {"require-isolated-cpus.resource-policy.nri.io/container.web": "maybe"}


class Notes(DecisionObserver):
    """Records its calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        rules = ",".join(reason.rule for reason in decision.reasons)
        self.lines.append(f"{type(event).__name__}: {rules}")

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        self.lines.append(f"{subject.title}: {type(error).__name__}")

    def configured(self, config: PolicyConfig) -> None:
        self.lines.append(f"configured: {type(config).__name__}")


async def test_decisions_are_observed_in_order_after_the_reply() -> None:
    notes = Notes()
    plugin = ResourcePolicy(parse_spec("1s2c1t"), observers=[notes])
    plugin.synchronize([], [])
    plugin.create_container(POD, CONTAINER)
    plugin.stop_container(POD, CONTAINER)
    before = list(notes.lines)
    await asyncio.sleep(0)

    assert before == []
    assert notes.lines == [
        "Synchronized: ",
        "Created: not-guaranteed",
        "Stopped: released",
    ]


def test_without_an_event_loop_decisions_are_observed_at_once() -> None:
    notes = Notes()
    plugin = ResourcePolicy(parse_spec("1s2c1t"), observers=[notes])
    plugin.stop_container(POD, CONTAINER)

    assert notes.lines == ["Stopped: unknown-container"]


def test_a_refusal_names_the_refused_container() -> None:
    notes = Notes()
    plugin = ResourcePolicy(parse_spec("1s2c1t"), observers=[notes])
    annotated = Pod(id="p", name="pod", namespace="shop", annotations=STRICT)
    with pytest.raises(InputError):
        plugin.create_container(annotated, CONTAINER)

    assert notes.lines == ["shop/pod/web: BadAnnotation"]


@pytest.mark.parametrize("by", ["runtime", "operator"])
def test_a_configuration_is_reported_when_it_is_in_force(by: str) -> None:
    notes, text = Notes(), STATIC
    plugin = ResourcePolicy(parse_spec("1s2c1t"), observers=[notes])
    if by == "runtime":
        plugin.configure(Configuration(text, RuntimeInfo()))
    else:
        reconfigure(plugin, parse_config(text))

    assert notes.lines[-1] == "configured: StaticPolicyConfig"
