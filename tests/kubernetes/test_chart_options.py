"""Each option of the chart, as a user sets it: an API server takes what it renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import yaml

from tests.deploy.helm import CHART, Release
from tests.docs.chart import described
from tests.kubernetes.control_plane import Answer, ControlPlane
from tests.kubernetes.test_manifests import known, lost

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

VALUES: Final = yaml.safe_load((CHART / "values.yaml").read_text())
OPTIONS: Final = tuple(
    path for path, _ in described((CHART / "values.yaml").read_text())
)
CRD: Final = "CustomResourceDefinition"
MUTATING: Final = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
# Without conditions of webhooks, which API servers before 1.28 would drop.
VERSION: Final = "v1.27.0"
# Of other projects, or of later releases than a server may have.
MAY_BE_UNKNOWN: Final = {
    *("Certificate", "Issuer", "PodMonitor", "PrometheusRule"),
    *("DeviceClass", "PodDisruptionBudget", "SecurityContextConstraints"),
    *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
}
RESOURCES: Final = {"requests": {"cpu": "30m", "memory": "80Mi"}}
ENV: Final = [{"name": "A", "value": "b"}]
FLAGS: Final = ["--log-level=debug"]
NO_CRDS: Final = {"crds": {"install": False}}
WEBHOOK: Final = {
    "enabled": True,
    "annotation": "cri-resource-manager",
    "validate": True,
    "excludedNamespaces": ["kube-system", "other"],
    "replicas": 3,
    "extraArgs": FLAGS,
    "extraEnv": ENV,
    "resources": RESOURCES,
}
ROWS: Final[Mapping[str, dict[str, Any]]] = {
    "pods": {
        "image": {"repository": "r.example/n", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "fullnameOverride": "named",
        "config": {
            "apiVersion": "config.nri/v1alpha1",
            "kind": "BalloonsPolicy",
            "spec": {"reservedResources": {"cpu": "1"}},
        },
        "agent": {
            "startupTaint": "example.com/starting",
            "extraArgs": FLAGS,
            "extraEnv": ENV,
            "resources": RESOURCES,
        },
        "daemon": {"extraArgs": FLAGS, "extraEnv": ENV, "resources": RESOURCES},
        "enableRuntime": {"enabled": True, "restart": True, "extraArgs": FLAGS},
        "serviceAccount": {"name": "other", "annotations": {"e": "f"}},
        "networkPolicy": {"monitoringNamespace": "watching"},
        "nodeSelector": {"kubernetes.io/os": "linux", "pool": "fast"},
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {
                            "matchExpressions": [{"key": "a", "operator": "Exists"}]
                        },
                    }
                ]
            }
        },
        "tolerations": [{"key": "fast", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
        "terminationGracePeriodSeconds": 40,
        "podAnnotations": {"c": "d"},
        "podLabels": {"a": "b"},
    }
    | NO_CRDS,
    "features": {"features": dict.fromkeys(VALUES["features"], True)} | NO_CRDS,
    "little": {
        "agent": {"enabled": False},
        "rbac": {"create": False},
        "networkPolicy": {"enabled": False},
        "admissionPolicy": {"enabled": False},
        "serviceAccount": {"create": False, "name": "made"},
    }
    | NO_CRDS,
    "ConfigMaps": {"agent": {"source": "config-maps", "namespace": "default"}}
    | NO_CRDS,
    "schedulers and claims": {
        "crds": {"nodeResourceTopology": True},
        "rbac": {"nodeStatus": True},
        "dra": {"enabled": True},
    },
    "webhook": {"webhook": WEBHOOK} | NO_CRDS,
    "other platforms": {
        "podMonitor": {"enabled": True, "interval": "1m", "labels": {"a": "b"}},
        "prometheusRule": {
            "enabled": True,
            "labels": {"a": "b"},
            "runbooks": "https://r.example/n/blob/main",
        },
        "openshift": {"enabled": True},
        "features": {"selinux": True},
        "webhook": {
            "enabled": True,
            "certificates": {"source": "cert-manager", "issuerRef": {"name": "ours"}},
        },
    }
    | NO_CRDS,
    "policy of requests": {
        "requestsPolicy": {"enabled": True, "excludedNamespaces": ["a"]}
    }
    | NO_CRDS,
}
# Of the test's own certificate.
GIVEN: Final = ("secretName", "caBundle")


def path_of(control_plane: ControlPlane, one: Mapping[str, Any]) -> str:
    """Return the path of an object's collection; empty for a kind that is unknown."""
    version = one["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    answer = control_plane.ask("GET", base)
    found = answer.body["resources"] if answer.status == 200 else ()
    for resource in found:
        if resource["kind"] == one["kind"] and "/" not in resource["name"]:
            namespace = one["metadata"].get("namespace", "")
            within = f"/namespaces/{namespace}" if resource["namespaced"] else ""
            return f"{base}{within}/{resource['name']}"
    return ""


def tried(control_plane: ControlPlane, path: str, one: Mapping[str, Any]) -> Answer:
    """Have an object defaulted, validated and admitted, but not kept."""
    if one["kind"] != CRD:
        return control_plane.ask("POST", f"{path}?dryRun=All", one)
    query = "dryRun=All&fieldManager=helm&force=true"  # it may be there
    where = f"{path}/{one['metadata']['name']}?{query}"
    return control_plane.ask("PATCH", where, one, kind="application/apply-patch+yaml")


def refused(
    control_plane: ControlPlane, namespace: str, values: Mapping[str, Any]
) -> Iterator[object]:
    """Yield what the server does not take as it is rendered."""
    kinds = (*known(control_plane), MUTATING)
    release = Release(name="options", namespace=namespace, version=VERSION, kinds=kinds)
    taken = set()
    for one in release.render(**values):
        kind = one["kind"]
        if not (path := path_of(control_plane, one)):
            if kind not in MAY_BE_UNKNOWN:
                yield kind, "is unknown"
            continue
        answer = tried(control_plane, path, one)
        taken.add(kind)
        if answer.status not in (200, 201):
            yield kind, answer.body
        elif paths := list(lost(answer.body, one)):
            yield kind, paths
    if "DaemonSet" not in taken:
        yield "nothing was taken"


@pytest.mark.parametrize("row", ROWS)
def test_the_api_server_takes_what_options_render(
    control_plane: ControlPlane, namespace: str, row: str
) -> None:
    assert list(refused(control_plane, namespace, ROWS[row])) == []


def test_the_api_server_takes_a_webhook_with_given_certificates(
    control_plane: ControlPlane, namespace: str
) -> None:
    bundle = control_plane.certificates.authority.read_text()
    given = {"source": "given", "secretName": "mine", "caBundle": bundle}
    values = {"webhook": {"enabled": True, "certificates": given}} | NO_CRDS

    assert set(given) - {"source"} == set(GIVEN)
    assert list(refused(control_plane, namespace, values)) == []


def test_each_option_is_set_in_some_row() -> None:
    def at(values: Any, path: tuple[str, ...]) -> Any:
        for key in path:
            values = values.get(key, {})
        return values

    unset = {
        path
        for path in OPTIONS
        if not any(at(row, path) not in ({}, at(VALUES, path)) for row in ROWS.values())
    }

    assert unset == {("webhook", "certificates", name) for name in GIVEN}
