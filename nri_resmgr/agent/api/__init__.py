"""The client of the Kubernetes API server: seven calls and a watch.

Start with `client.ApiClient`::

    access = find_access()
    async with ApiClient.open(access) as api:
        node = await api.get(Ref(NODES, "node-a"))
        await api.apply(Ref(STATUSES, "node-a", subresource="status"), {"status": ...})
        await api.watch(Target(NODES, name="node-a", metadata_only=True), receive)

What it is made of, from values to sockets:

* `resources`, `objects`: kinds with their paths, and objects with the few fields that
  a client needs; `answers` makes either of an HTTP response, `errors` is what else it
  can be. Each error is a sentence that says which party can act.
* `news`: what a watch reports. `watch` is the list/watch machine, `lines` and `pace`
  are its parts. It has no clock, socket or event loop: responses, bytes and timers are
  its inputs, requests and news its outputs, and the random number is an input as well.
* `access`, `kubeconfig`: where the API server is, and by which credentials.
  `credentials` reads tokens, certificates and CAs, and again when they are rotated.
* `transport` sends requests with httpx2 (docs/adr/0009), `watcher` runs a machine on
  it, `kinds` looks for kinds that are missing, and `client` has the calls.

Times are intervals of the monotonic clock. The wall clock is compared with nothing, not
with a token's `exp` either; a certificate that is refused for its dates is reported
with both clocks.

Nothing here logs, decides or retries a write: callers do.
"""

from __future__ import annotations

from nri_resmgr.agent.api.access import find_access, find_node_name
from nri_resmgr.agent.api.client import ApiClient
from nri_resmgr.agent.api.credentials import Access
from nri_resmgr.agent.api.errors import ApiError
from nri_resmgr.agent.api.news import (
    Changed,
    Failing,
    News,
    Recovered,
    Removed,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.api.objects import ApiObject
from nri_resmgr.agent.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PODS,
    Ref,
    Resource,
)

__all__ = [
    "CONFIG_MAPS",
    "EVENTS",
    "NODES",
    "PODS",
    "Access",
    "ApiClient",
    "ApiError",
    "ApiObject",
    "Changed",
    "Failing",
    "News",
    "Recovered",
    "Ref",
    "Removed",
    "Resource",
    "Synced",
    "Target",
    "Unreadable",
    "find_access",
    "find_node_name",
]
