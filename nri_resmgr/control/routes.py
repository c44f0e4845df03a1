"""What is at which path of the control socket."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from nri_resmgr.control.containers import Data
from nri_resmgr.control.events import event_lines
from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.host import host_of
from nri_resmgr.control.http import (
    JSON_LINES,
    Limits,
    Reply,
    Request,
    RequestRefused,
    Routes,
    Site,
    json_reply,
)
from nri_resmgr.control.listener import refusal_of_peer
from nri_resmgr.control.state import state_of
from nri_resmgr.control.subject import API_VERSION, Subject
from nri_resmgr.topology.document import to_document

SCHEMA: Final = Path(__file__).with_name("schema.json")
"""What all answers look like, as JSON Schema."""

# Few ask, and all are root: enough for some followers and a mistake in a script.
_LIMITS: Final = Limits(head=8 << 10, body=4 << 10, connections=16)


def site_of(subject: Subject) -> Site:
    """Make what is served for a daemon."""
    return Site(
        routes=routes_of(subject),
        limits=_LIMITS,
        admit=refusal_of_peer,
        refuse=_refused,
    )


def routes_of(subject: Subject) -> Routes:
    """List the paths. Only ``PUT`` and ``POST`` change anything."""
    return {
        ("GET", "/v1/state"): _telling(lambda _: state_of(subject)),
        ("GET", "/v1/topology"): _telling(lambda _: _topology(subject)),
        ("GET", "/v1/host"): _telling(lambda _: host_of(subject)),
        ("GET", "/v1/explain"): _telling(lambda asked: _explain(subject, asked)),
        ("GET", "/v1/events"): lambda asked: _events(subject, asked),
        ("GET", "/v1/log"): _telling(lambda _: _levels(subject)),
        ("PUT", "/v1/log"): _telling(lambda asked: _set_level(subject, asked)),
        ("POST", "/v1/reload"): lambda asked: _reload(subject, asked),
        ("GET", "/v1/schema"): lambda _: Reply(SCHEMA.read_bytes()),
    }


def _telling(data: Callable[[Request], Data]) -> Callable[[Request], Reply]:
    return lambda asked: json_reply(data(asked))


def _refused(status: int, why: str) -> Reply:
    refusal = {"apiVersion": API_VERSION, "kind": "Refusal", "why": why}
    return json_reply(refusal, status)


def _topology(subject: Subject) -> Data:
    machine = to_document(subject.policy.machine)
    return {"apiVersion": API_VERSION, "kind": "Topology", "machine": machine}


def _explain(subject: Subject, asked: Request) -> Data:
    _know(asked, "pod", "container")
    pod = asked.query.get("pod", "")
    if not pod:
        raise RequestRefused(400, "which pod? ?pod=NAME, and &container=NAME")
    return explanation_of(subject, pod, asked.query.get("container", ""))


def _events(subject: Subject, asked: Request) -> Reply:
    _know(asked, "since", "follow")
    since, follow = asked.query.get("since", "0"), asked.query.get("follow", "0")
    if not re.fullmatch(r"[0-9]{1,18}", since):
        raise RequestRefused(
            400, f"since={since:.40}: the number of an event is needed"
        )
    if follow not in ("0", "1"):
        raise RequestRefused(400, f"follow={follow}: 0 or 1 is needed")
    lines = event_lines(subject.history, int(since), follow=follow == "1")
    return Reply(lines, JSON_LINES)


def _levels(subject: Subject) -> Data:
    head = {"apiVersion": API_VERSION, "kind": "LogLevels"}
    return head | {"levels": dict(subject.levels.as_data())}


def _set_level(subject: Subject, asked: Request) -> Data:
    match _document(asked):
        case {"pattern": str(pattern), "level": str(level), **more} if not more:
            subject.levels.set(pattern, level)
        case _:
            raise RequestRefused(400, 'want {"pattern": "stub.*", "level": "debug"}')
    return _levels(subject)


async def _reload(subject: Subject, asked: Request) -> Reply:
    _know(asked)
    await subject.reload()
    return json_reply({"apiVersion": API_VERSION, "kind": "Reloaded"})


def _document(asked: Request) -> Any:
    try:
        return json.loads(asked.body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None


def _know(asked: Request, *names: str) -> None:
    if unknown := sorted(asked.query.keys() - set(names)):
        known = f"; known: {', '.join(names)}" if names else ""
        raise RequestRefused(400, f"unknown parameter {unknown[0]!r}{known}")
