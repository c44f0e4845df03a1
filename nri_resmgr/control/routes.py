"""The paths of the control socket and their handlers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nri_resmgr.control.daemon_view import API_VERSION, DaemonView
from nri_resmgr.control.events import event_lines
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.host import host_of
from nri_resmgr.control.http import (
    JSON_LINES,
    ClientLimits,
    HttpReply,
    HttpRequest,
    RequestRefused,
    Routes,
    Site,
    json_reply,
)
from nri_resmgr.control.listener import refusal_of_peer
from nri_resmgr.control.state import state_of
from nri_resmgr.topology.document import to_document
from nri_resmgr.values.documents import JsonObject

SCHEMA: Final = Path(__file__).with_name("schema.json")
"""JSON Schema of all answers."""

# All clients are root: enough for some followers and a mistake in a script.
_LIMITS: Final = ClientLimits(head=8 << 10, body=4 << 10, connections=16)


def site_of(daemon: DaemonView) -> Site:
    """Return the site of a daemon."""
    return Site(
        routes=routes_of(daemon),
        limits=_LIMITS,
        admit=refusal_of_peer,
        refuse=_refused,
    )


def routes_of(daemon: DaemonView) -> Routes:
    """Return the handler of each path. Only ``PUT`` and ``POST`` change anything."""
    return {
        ("GET", "/v1/state"): _json(lambda _: state_of(daemon)),
        ("GET", "/v1/topology"): _json(lambda _: _topology(daemon)),
        ("GET", "/v1/host"): _json(lambda _: host_of(daemon)),
        ("GET", "/v1/explain"): _json(lambda request: _explain(daemon, request)),
        ("GET", "/v1/events"): lambda request: _events(daemon, request),
        ("GET", "/v1/log"): _json(lambda _: _levels(daemon)),
        ("PUT", "/v1/log"): _json(lambda request: _set_level(daemon, request)),
        ("POST", "/v1/reload"): lambda request: _reload(daemon, request),
        ("GET", "/v1/schema"): lambda _: HttpReply(SCHEMA.read_bytes()),
    }


def _json(
    data: Callable[[HttpRequest], JsonObject],
) -> Callable[[HttpRequest], HttpReply]:
    return lambda request: json_reply(data(request))


def _refused(status: int, why: str) -> HttpReply:
    refusal = {"apiVersion": API_VERSION, "kind": "Refusal", "why": why}
    return json_reply(refusal, status)


def _topology(daemon: DaemonView) -> JsonObject:
    machine = to_document(daemon.policy.machine)
    return {"apiVersion": API_VERSION, "kind": "Topology", "machine": machine}


def _explain(daemon: DaemonView, request: HttpRequest) -> JsonObject:
    _check_parameters(request, "pod", "container")
    pod = request.query.get("pod", "")
    if not pod:
        raise RequestRefused(400, "expected ?pod=NAME, and optionally &container=NAME")
    return explanation_of(daemon, pod, request.query.get("container", ""))


def _events(daemon: DaemonView, request: HttpRequest) -> HttpReply:
    _check_parameters(request, "since", "follow")
    since, follow = request.query.get("since", "0"), request.query.get("follow", "0")
    if not re.fullmatch(r"[0-9]{1,18}", since):
        raise RequestRefused(400, f"since={since:.40}: expected the number of an event")
    if follow not in ("0", "1"):
        raise RequestRefused(400, f"follow={follow}: expected 0 or 1")
    lines = event_lines(daemon.history, int(since), follow=follow == "1")
    return HttpReply(lines, JSON_LINES)


def _levels(daemon: DaemonView) -> JsonObject:
    head = {"apiVersion": API_VERSION, "kind": "LogLevels"}
    return head | {"levels": dict(daemon.levels.as_data())}


def _set_level(daemon: DaemonView, request: HttpRequest) -> JsonObject:
    match _document(request):
        case {"pattern": str(pattern), "level": str(level), **more} if not more:
            daemon.levels.set(pattern, level)
        case _:
            raise RequestRefused(
                400, 'expected {"pattern": "stub.*", "level": "debug"}'
            )
    return _levels(daemon)


async def _reload(daemon: DaemonView, request: HttpRequest) -> HttpReply:
    _check_parameters(request)
    await daemon.reload()
    return json_reply({"apiVersion": API_VERSION, "kind": "Reloaded"})


def _document(request: HttpRequest) -> object:
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None


def _check_parameters(request: HttpRequest, *names: str) -> None:
    if unknown := sorted(request.query.keys() - set(names)):
        known = f"; known: {', '.join(names)}" if names else ""
        raise RequestRefused(400, f"unknown parameter {unknown[0]!r}{known}")
