"""Pods as people write them, and what they ask for by a reading of our own."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = dict[str, Any]

_SUFFIXES: Final = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    "k": Decimal(1000),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
}
_EXTENDED: Final = ("nvidia.com/gpu", "vendor.example/nic", "smarter-devices/fuse")

_NAMES: Final = ("web", "db-0", "a", "x" * 63, "log-shipper", "istio-proxy", "0", "gpu")
# What is in pods besides, and must neither be read nor changed.
_BESIDES: Final = {
    "image": "registry.example.com/app:1",
    "command": ["/bin/sh", "-c", "echo 'hello \\u2603 \"there\"'"],
    "env": [{"name": "TOKEN", "value": "s3cr3t \u2603"}],
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
}

_cpus = st.one_of(
    st.integers(1, 9999).map(lambda n: f"{n}m"),
    st.sampled_from(["0.5", "1.25", "2e0", "100e-3", "1", "2", "64"]),
)
_bytes = st.one_of(
    st.integers(1, 4000).map(lambda n: f"{n}Mi"),
    st.sampled_from(["128974848", "1.5Gi", "1G", "2500k", "64Ki", "1"]),
)
_amounts = st.fixed_dictionaries(
    {},
    optional={
        "cpu": _cpus,
        "memory": _bytes,
        "ephemeral-storage": st.just("1Gi"),
        "hugepages-2Mi": st.sampled_from(["2Mi", "64Mi"]),
        "nvidia.com/gpu": st.sampled_from(["1", "8"]),
    },
)
_containers = st.tuples(
    st.fixed_dictionaries(
        {}, optional={"limits": _amounts, "requests": _amounts, "claims": st.just([])}
    ),
    st.booleans(),
)
_annotations = st.sampled_from(
    (
        {},
        {"a~b/c~1d": "e"},
        {"cpu.preserve.resource-policy.nri.io": "true", "note": "\u2603"},
        {"noderesource.dev/resources": "forged", "intel.com/resources": "{}"},
    )
)


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A pod, as an API server sends it for review."""
    drawn = draw(st.lists(_containers, min_size=1, max_size=5))
    made: list[Json] = [
        {"name": name, **_BESIDES, **({"resources": asked} if asked or one else {})}
        for name, (asked, one) in zip(_NAMES, drawn, strict=False)
    ]
    init = draw(st.integers(0, len(made) - 1))
    for container, (_, is_sidecar) in zip(made[:init], drawn, strict=False):
        if is_sidecar:
            container["restartPolicy"] = "Always"
    for container, (_, has_policy) in zip(made[init:], drawn[init:], strict=False):
        if has_policy:
            container["restartPolicy"] = "OnFailure"
    spec: Json = {
        "containers": made[init:],
        "restartPolicy": "Always",
        "nodeSelector": {"disk": "ssd"},
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    if init:
        spec["initContainers"] = made[:init]
    if draw(st.booleans()):
        limits = {"cpu": draw(_cpus), "memory": draw(_bytes)}
        spec["resources"] = {"limits": limits, "requests": dict(limits)}
    metadata: Json = {"generateName": "web-", "namespace": "default"}
    if found := draw(_annotations):
        metadata["annotations"] = dict(found)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def review(
    subject: object,
    *,
    operation: str = "CREATE",
    resource: tuple[str, str] = ("", "pods"),
    kind: str = "Pod",
    before: object = None,
    **more: object,
) -> Json:
    """An AdmissionReview with all fields that API servers send."""
    group, plural = resource
    of_kind = {"group": group, "version": "v1", "kind": kind}
    of_resource = {"group": group, "version": "v1", "resource": plural}
    request: Json = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": of_kind,
        "resource": of_resource,
        "requestKind": of_kind,
        "requestResource": of_resource,
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
        "object": subject,
        "oldObject": before,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation}Options"},
        **more,
    }
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": request,
    }


def patched(subject: Json, patch: list[Json]) -> Json:
    """Apply a JSON patch (RFC 6902) of additions and removals in mappings."""
    found: Json = {**subject, "metadata": dict(subject["metadata"])}
    for one in patch:
        *above, last = (
            part.replace("~1", "/").replace("~0", "~")
            for part in one["path"].removeprefix("/").split("/")
        )
        place = found
        for part in above:
            place[part] = dict(place[part])
            place = place[part]
        if one["op"] == "remove":
            del place[last]
        else:
            assert one["op"] == "add"
            place[last] = one["value"]
    return found


def amount(text: str, unit: int = 1) -> int:
    """A quantity in units of 1/*unit*, rounded up as Kubernetes does."""
    number = text.rstrip(string.ascii_letters.replace("e", ""))
    return math.ceil(Decimal(number) * _SUFFIXES[text[len(number) :]] * unit)


def expected(container: Mapping[str, Any], pod: Mapping[str, Any]) -> Json:
    """What a container asks for: as the daemon has it, from the pod itself."""
    resources = container.get("resources", {})
    limits = resources.get("limits", {})
    requests = {**limits, **resources.get("requests", {})}
    own = pod["spec"].get("resources", {}).get("limits", {})
    pod_cpu = amount(own["cpu"], 1000) if "cpu" in own else None
    pod_memory = amount(own["memory"]) if "memory" in own else None
    cpu = amount(requests["cpu"], 1000) if "cpu" in requests else 0
    return {
        "cpu": cpu or pod_cpu or 0,
        "cpu_limit": amount(limits["cpu"], 1000) if "cpu" in limits else pod_cpu,
        "memory": amount(requests["memory"]) if "memory" in requests else 0,
        "memory_limit": amount(limits["memory"]) if "memory" in limits else pod_memory,
        "extended": {k: int(v) for k, v in requests.items() if "/" in k},
        "hugepages": amount(requests["hugepages-2Mi"]) // 2**21
        if "hugepages-2Mi" in requests
        else 0,
    }
