"""The paths of the control socket and their handlers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import socket
from time import monotonic
from typing import Annotated, Final, TypeAlias

import msgspec

from nri_resmgr.app.background.threads import OneCall
from nri_resmgr.app.plugin.changes.rebalancing import measure_and_rebalance
from nri_resmgr.config.policy_config import MOST_MOVED
from nri_resmgr.control.cluster import cluster_of
from nri_resmgr.control.daemon_view import API_VERSION, DaemonView
from nri_resmgr.control.delivery import KernelReader, pending_of
from nri_resmgr.control.dra import driver_of
from nri_resmgr.control.events import event_lines, reason_of
from nri_resmgr.control.explain import explanation_with_kernel
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
from nri_resmgr.control.listener import peer_of, refusal_of_peer
from nri_resmgr.control.state import state_of
from nri_resmgr.control.zones import zones_of
from nri_resmgr.topology.document import to_document
from nri_resmgr.values import HostError
from nri_resmgr.values.documents import JsonObject

SCHEMA: Final = Path(__file__).with_name("schema.json")
"""JSON Schema of all answers."""

_AGENT: Final = "/v1/agent"

# All clients are root, or the agent. Half of the places are not for followers, so that
# some that are forgotten in a script cannot lock `status` out.
_LIMITS: Final = ClientLimits(head=8 << 10, body=4 << 10, connections=16, streams=8)


# Writes for a thousand containers take a tenth of that.
_SETTLING: Final = 3.0  # seconds
_LOOK_AGAIN: Final = 0.02  # seconds

# `nri-resmgr top` asks each two seconds; the read takes milliseconds.
_HOST_PATIENCE: Final = 5.0  # seconds


# A name of Kubernetes has 253 characters at most.
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class _Report(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a report of the agent; see `AgentReport`.

    Fields of a later agent are ignored: it is often updated before the daemon.
    """

    version: _Name
    node: _Name
    contact_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    problem: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class HostSlow(HostError):
    """Files of the host take too long."""

    def __str__(self) -> str:
        return (
            "the host does not answer: reading its pressure and memory takes more than "
            f"{_HOST_PATIENCE:g} s"
        )


def site_of(daemon: DaemonView) -> Site:
    """Return the site of a daemon."""
    return Site(
        routes=routes_of(daemon),
        limits=_LIMITS,
        admit=partial(_admit, daemon),
        permit=partial(_permit, daemon),
        refuse=_refused,
    )


def _admit(daemon: DaemonView, connected: socket) -> str:
    owner = daemon.cluster.owner if daemon.cluster else None
    if owner is not None and peer_of(connected) == owner:
        return ""  # the agent; `_permit` limits it
    return refusal_of_peer(connected)


def _permit(daemon: DaemonView, connected: socket, request: HttpRequest) -> str:
    """Return why a client may not send this request; empty if it may.

    The agent configures the node by its documents, and by nothing else.
    """
    if request.method in ("GET", "HEAD") or request.path == _AGENT:
        return ""
    if not refusal_of_peer(connected):
        return ""
    owner = daemon.cluster.owner if daemon.cluster else None
    return f"user {owner}, who owns the spool folder, may only read"


def routes_of(daemon: DaemonView) -> Routes:
    """Return the handler of each path. Only ``PUT`` and ``POST`` change anything."""
    return {
        ("GET", "/v1/state"): _json(lambda _: state_of(daemon)),
        ("GET", "/v1/zones"): _json(lambda _: zones_of(daemon)),
        ("GET", "/v1/topology"): _json(lambda _: _topology(daemon)),
        ("GET", "/v1/host"): partial(
            _host, daemon, OneCall[JsonObject](_HOST_PATIENCE)
        ),
        ("GET", "/v1/explain"): partial(_explain, daemon, KernelReader(daemon.tree)),
        ("GET", "/v1/events"): lambda request: _events(daemon, request),
        ("GET", "/v1/log"): _json(lambda _: _levels(daemon)),
        ("PUT", "/v1/log"): _json(lambda request: _set_level(daemon, request)),
        ("POST", "/v1/reload"): lambda request: _reload(daemon, request),
        ("POST", "/v1/rebalance"): lambda request: _rebalance(daemon, request),
        ("GET", "/v1/cluster"): _json(lambda _: _cluster(daemon)),
        ("GET", "/v1/claims"): _json(lambda _: _claims(daemon)),
        ("POST", _AGENT): _json(lambda request: _agent(daemon, request)),
        ("GET", "/v1/schema"): lambda _: HttpReply(SCHEMA.read_bytes()),
    }


def _json(
    data: Callable[[HttpRequest], JsonObject],
) -> Callable[[HttpRequest], HttpReply]:
    return lambda request: json_reply(data(request))


async def _host(
    daemon: DaemonView, reading: OneCall[JsonObject], _: HttpRequest
) -> HttpReply:
    try:
        return json_reply(await reading.result(lambda: host_of(daemon)))
    except TimeoutError:
        raise HostSlow from None


def _refused(status: int, why: str) -> HttpReply:
    refusal = {"apiVersion": API_VERSION, "kind": "Refusal", "why": why}
    return json_reply(refusal, status)


def _topology(daemon: DaemonView) -> JsonObject:
    machine = to_document(daemon.policy.machine)
    return {"apiVersion": API_VERSION, "kind": "Topology", "machine": machine}


async def _explain(
    daemon: DaemonView, kernel: KernelReader, request: HttpRequest
) -> HttpReply:
    _check_parameters(request, "pod", "container")
    pod = request.query.get("pod", "")
    if not pod:
        raise RequestRefused(400, "expected ?pod=NAME, and optionally &container=NAME")
    container = request.query.get("container", "")
    return json_reply(await explanation_with_kernel(daemon, kernel, pod, container))


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
    return head | {"levels": daemon.levels.as_data()}


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
    _check_parameters(request, "force")
    force = request.query.get("force", "0")
    if force not in ("0", "1"):
        raise RequestRefused(400, f"force={force:.40}: expected 0 or 1")
    await daemon.reload(force=force == "1")
    pending = await _settled(daemon)
    return json_reply(
        {
            "apiVersion": API_VERSION,
            "kind": "Reloaded",
            "generation": daemon.configuration().generation,
            "pendingUpdates": pending,
        }
    )


async def _rebalance(daemon: DaemonView, request: HttpRequest) -> HttpReply:
    _check_parameters(request, "at-most", "dry-run")
    at_most = request.query.get("at-most", "")
    if at_most and not (at_most.isdecimal() and 1 <= int(at_most[:9]) <= MOST_MOVED):
        why = f"at-most={at_most:.40}: expected 1 to {MOST_MOVED}"
        raise RequestRefused(400, why)
    dry_run = request.query.get("dry-run", "0")
    if dry_run not in ("0", "1"):
        raise RequestRefused(400, f"dry-run={dry_run:.40}: expected 0 or 1")
    decision = await measure_and_rebalance(
        daemon.policy,
        daemon.tree,
        lambda: daemon.sessions.is_synchronized,
        at_most=int(at_most or 0),
        dry_run=dry_run == "1",
    )
    return json_reply(
        {
            "apiVersion": API_VERSION,
            "kind": "Rebalanced",
            "dryRun": dry_run == "1" or daemon.policy.options.dry_run,
            "containers": [reason_of(reason) for reason in decision.reasons],
            "updates": len(decision.updates),
            "pendingUpdates": await _settled(daemon),
        }
    )


def _cluster(daemon: DaemonView) -> JsonObject:
    if daemon.cluster is None:
        raise RequestRefused(404, "this daemon has no --spool folder")
    head = {"apiVersion": API_VERSION, "kind": "Cluster"}
    return head | cluster_of(daemon.cluster.status, daemon.policy.state)


def _claims(daemon: DaemonView) -> JsonObject:
    head = {"apiVersion": API_VERSION, "kind": "Claims"}
    return head | driver_of(daemon.policy, daemon.dra())


def _agent(daemon: DaemonView, request: HttpRequest) -> JsonObject:
    """Note a report of the agent, and answer as ``GET /v1/cluster``."""
    if daemon.cluster is not None:
        try:
            report = msgspec.json.decode(request.body, type=_Report)
        except (ValueError, RecursionError) as error:
            raise RequestRefused(400, f"not a report of an agent: {error}") from None
        contact, problem = report.contact_seconds, report.problem
        daemon.cluster.hear(report.version, report.node, contact, problem)
    return _cluster(daemon)


async def _settled(daemon: DaemonView) -> JsonObject:
    """Wait until nothing waits to be in force, as far as that is a matter of seconds.

    Where only a request of the runtime brings it about, do not wait.
    """
    policy, deadline = daemon.policy, monotonic() + _SETTLING
    while (pending := pending_of(daemon))["count"] and monotonic() < deadline:
        if not (policy.delivery.oldest_seconds or policy.updates.may_call):
            break
        await asyncio.sleep(_LOOK_AGAIN)
    return pending


def _document(request: HttpRequest) -> object:
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None


def _check_parameters(request: HttpRequest, *names: str) -> None:
    if unknown := sorted(request.query.keys() - set(names)):
        known = f"; known: {', '.join(names)}" if names else ""
        raise RequestRefused(400, f"unknown parameter {unknown[0]!r}{known}")
