"""Adjustments as agents see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from nri_resmgr.agent.adjustments import ADJUSTMENTS
from nri_resmgr.agent.api import ApiObject
from nri_resmgr.agent.api.objects import read_object
from tests.agent.fake_api_server import Json

NAMESPACE: Final = "kube-system"
PATH: Final = ADJUSTMENTS.path(NAMESPACE)
KIND: Final = "criresmgr.intel.com/adjustments"


def entries_of(count: int, name: str = "other") -> Json:
    """Return the entries of so many nodes."""
    return {f"{name}-{number}": {"errors": {}} for number in range(count)}


def adjustment(
    name: str, *scopes: Iterable[str], entries: Json | None = None, **payload: Any
) -> Json:
    """Return one for the nodes of each scope; a scope without any is for all."""
    spec = {"scope": [{"nodes": list(nodes)} for nodes in scopes or ((),)], **payload}
    body: Json = {"metadata": {"name": name}, "spec": spec}
    return body if entries is None else body | {"status": {"nodes": entries}}


def seen(body: Json, uid: str = "uid-1", version: str = "1") -> ApiObject:
    """Return an adjustment as a watch brings it."""
    ours = {"namespace": NAMESPACE, "uid": uid, "resourceVersion": version}
    whole = body | {"metadata": body["metadata"] | ours}
    return read_object(json.dumps(whole).encode(), ADJUSTMENTS, with_body=True)
