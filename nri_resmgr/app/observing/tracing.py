"""Spans of traces, as values; `nri_resmgr.daemon.tracing` sends them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Final

import msgspec

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.policy.events import ColdStartEnded, Created, Event, Updated
from nri_resmgr.stub.request import RequestContext, causing_request
from nri_resmgr.values import ResmgrError
from nri_resmgr.values.printable import printable

# Spans of the first second: the libraries that send them are imported late.
_MOST_WAITING: Final = 100

_SECOND: Final = 1_000_000_000  # nanoseconds


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the runtime, from its arrival until after its answer.

    Attributes:
        began: UNIX nanoseconds.
        ended: UNIX nanoseconds.
        error: The sentence of a refusal; empty for a success.
        carrier: Headers of the request; a traced runtime's has ``traceparent``.
    """

    name: str
    began: int
    ended: int
    attributes: Mapping[str, str | int]
    error: str = ""
    carrier: Mapping[str, str] = {}


class Tracing(DecisionObserver):
    """Makes a span of each request that is decided or refused.

    Of pods and containers a span has names and ids only: traces leave the node.

    Attributes:
        is_on: Whether spans are made; `switch` changes it.
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._waiting: deque[Span] = deque(maxlen=_MOST_WAITING)
        self._send: Callable[[Span], object] = self._waiting.append

    def switch(self, *, is_on: bool) -> None:
        """Make spans from now on, which wait for `send_to`, or make none."""
        if is_on == self.is_on:
            return
        self.is_on = is_on
        self._waiting.clear()
        self._send = self._waiting.append

    def send_to(self, send: Callable[[Span], object]) -> None:
        """Send all spans by *send* from now on, the waiting ones first."""
        self._send = send
        while self._waiting:
            send(self._waiting.popleft())

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Trace a request that succeeded."""
        if not self.is_on:
            return
        request = causing_request()
        # A timer runs in the context of the request that set it: not this request's.
        if request is None or isinstance(event, ColdStartEnded):
            return
        attributes = {"nri.updates": len(decision.updates), **_of_event(event)}
        if len(decision.reasons) == 1:
            (reason,) = decision.reasons
            attributes |= {
                "nri.rule": reason.rule.value,
                "nri.pool": reason.pool,
                "nri.cpus": str(reason.cpus),
                "nri.mems": str(reason.mems),
                "nri.source": reason.source,
                "nri.title": reason.title,
                "container.id": reason.container,
            }
        else:
            attributes["nri.containers"] = len(decision.reasons)
        self._send(_span(request, attributes))

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Trace a request that was refused."""
        if self.is_on and (request := causing_request()) is not None:
            kind = type(error).__name__
            attributes = {"nri.title": subject.title, "error.type": kind}
            self._send(_span(request, attributes, str(error)))


def _of_event(event: Event) -> dict[str, str | int]:
    if not isinstance(event, Created | Updated):
        return {}
    spec = event.spec
    return {
        "k8s.namespace.name": spec.namespace,
        "k8s.pod.name": spec.pod_name,
        "k8s.pod.uid": spec.pod_uid,
        "k8s.container.name": spec.name,
    }


def _span(
    request: RequestContext, attributes: Mapping[str, str | int], error: str = ""
) -> Span:
    ended = time_ns()
    took = asyncio.get_running_loop().time() - request.received
    # Views of traces are pages and terminals of others, and a lone surrogate would make
    # a whole batch impossible to encode.
    present = {
        key: printable(value) if isinstance(value, str) else value
        for key, value in attributes.items()
        if value != ""
    }
    return Span(
        name=request.method,
        began=ended - int(took * _SECOND),
        ended=ended,
        attributes={
            "rpc.system": "ttrpc",
            "rpc.method": request.method,
            "nri.result": "refused" if error else "ok",
            **present,
        },
        error=printable(error),
        carrier=dict(request.metadata),
    )
