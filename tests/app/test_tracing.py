"""What a trace says of a request."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from nri_resmgr.app.observers.observer import Subject
from nri_resmgr.app.observing.tracing import Span, Tracing
from nri_resmgr.policy.decision import Decision, Reason
from nri_resmgr.policy.errors import ExclusiveCpusShort
from nri_resmgr.policy.events import ColdStartEnded, ContainerSpec, Created, Stopped
from nri_resmgr.policy.rules import Rule
from nri_resmgr.stub.request import RequestContext, enter, leave
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.printable import printable
from tests.security.hostile import ALL

SPEC = ContainerSpec("c1", namespace="default", pod_name="web", name="nginx")
PLACED: Decision[Any] = Decision(
    state=None,
    reasons=(Reason(Rule.WHOLE_CPUS, "c1", "default/web/nginx", CpuSet.of(1, 2)),),
)


def request(method: str) -> RequestContext:
    parent = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    received = asyncio.get_running_loop().time() - 0.25
    return RequestContext(method, received, timeout=2.0, metadata=(parent,))


def spans_of(tracing: Tracing) -> list[Span]:
    spans: list[Span] = []
    tracing.send_to(spans.append)
    return spans


async def test_a_placement_is_a_span_with_its_reason() -> None:
    tracing = Tracing()
    token = enter(request("CreateContainer"))
    tracing.decided(Created(SPEC), PLACED)
    leave(token)
    (span,) = spans_of(tracing)

    assert dict(span.attributes) == {
        "rpc.system": "ttrpc",
        "rpc.method": "CreateContainer",
        "nri.result": "ok",
        "nri.updates": 0,
        "nri.rule": "whole-cpus",
        "nri.cpus": "1-2",
        "nri.title": "default/web/nginx",
        "container.id": "c1",
        "k8s.namespace.name": "default",
        "k8s.pod.name": "web",
        "k8s.container.name": "nginx",
    }
    assert (span.name, span.error) == ("CreateContainer", "")
    assert span.ended - span.began == pytest.approx(0.25e9, abs=0.2e9)
    assert span.carrier["traceparent"].startswith("00-0af7651916cd43dd")


async def test_a_refusal_is_a_span_with_its_sentence() -> None:
    tracing = Tracing()
    error = ExclusiveCpusShort("default/web/nginx", 3, *(NO_CPUS,) * 5)
    token = enter(request("CreateContainer"))
    tracing.refused(Subject("default", "web", "nginx"), error)
    leave(token)
    (span,) = spans_of(tracing)

    assert dict(span.attributes) == {
        "rpc.system": "ttrpc",
        "rpc.method": "CreateContainer",
        "nri.result": "refused",
        "nri.title": "default/web/nginx",
        "error.type": "ExclusiveCpusShort",
    }
    assert span.error == str(error)


async def test_names_of_pods_are_printable_in_spans() -> None:
    tracing, hostile = Tracing(), "".join(ALL)
    spec = msgspec.structs.replace(SPEC, pod_name=hostile)
    placed = PLACED.reasons[0]
    reasons = (msgspec.structs.replace(placed, title=hostile),)
    token = enter(request("CreateContainer"))
    tracing.decided(Created(spec), msgspec.structs.replace(PLACED, reasons=reasons))
    tracing.refused(
        Subject("shop", hostile), ExclusiveCpusShort(hostile, 3, *(NO_CPUS,) * 5)
    )
    leave(token)
    spans = spans_of(tracing)
    texts = [str(text) for span in spans for text in span.attributes.values()]
    texts += [span.error for span in spans]

    assert [text for text in texts if not text.isprintable()] == []
    assert sum(printable(hostile) in text for text in texts) == 4


async def test_decisions_outside_of_requests_make_no_span() -> None:
    tracing = Tracing()
    tracing.decided(Stopped("c1"), PLACED)
    token = enter(request("StartContainer"))  # which set the alarm
    tracing.decided(ColdStartEnded("c1"), PLACED)
    leave(token)

    assert spans_of(tracing) == []


async def test_the_queue_of_spans_is_bounded() -> None:
    tracing = Tracing()
    token = enter(request("CreateContainer"))
    for _ in range(150):
        tracing.decided(Created(SPEC), PLACED)
    spans = spans_of(tracing)
    tracing.decided(Created(SPEC), PLACED)
    leave(token)

    assert len(spans) == 101
