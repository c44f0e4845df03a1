"""Spans of traces, as values; `nri_resmgr.daemon.tracing` sends them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Final

import msgspec

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.policy.events import ColdStartEnded, Created, Event, Updated
from nri_resmgr.stub.request import RequestContext, causing_request
from nri_resmgr.values import ResmgrError

# Spans of the first second: the libraries that send them are imported late.
_MOST_WAITING: Final = 100

_SECOND: Final = 1_000_000_000  # nanoseconds


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the runtime, from its arrival until after its answer.

    Attributes:
        name: The method.
        began: UNIX nanoseconds.
        ended: UNIX nanoseconds.
        attributes: Span attributes.
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
    """

    def __init__(self) -> None:
        self._waiting: deque[Span] = deque(maxlen=_MOST_WAITING)
        self._send: Callable[[Span], object] = self._waiting.append

    def send_to(self, send: Callable[[Span], object]) -> None:
        """Send all spans by *send* from now on, the waiting ones first."""
        self._send = send
        while self._waiting:
            send(self._waiting.popleft())

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Trace a request that succeeded."""
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

    def refused(self, title: str, error: ResmgrError) -> None:
        """Trace a request that was refused."""
        if (request := causing_request()) is not None:
            kind = type(error).__name__
            self._send(
                _span(request, {"nri.title": title, "error.type": kind}, str(error))
            )


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
    present = {key: value for key, value in attributes.items() if value != ""}
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
        error=error,
        carrier=dict(request.metadata),
    )
