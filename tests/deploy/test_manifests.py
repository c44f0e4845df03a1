"""Manifests are what the API and the daemon take."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from nri_resmgr.cli.main import main
from tests.deploy.kubectl import COMPONENTS, MANIFESTS, OVERLAYS, of_kind, rendered

pytestmark = pytest.mark.process

# Below the API's groups, or of OpenShift, which publishes no schema.
_UNPUBLISHED = "SecurityContextConstraints"


def manifests() -> list[Path]:
    return sorted(MANIFESTS.rglob("*.yaml"))


def folder_of(overlay: str) -> Path:
    return MANIFESTS / ("base" if overlay == "base" else f"overlays/{overlay}")


@pytest.mark.parametrize("version", ["1.26", "1.37"], ids=["oldest", "newest"])
@pytest.mark.parametrize("overlay", ["base", *OVERLAYS])
def test_every_object_is_valid_by_the_published_schema(
    overlay: str, version: str
) -> None:
    for one in rendered(folder_of(overlay)):
        if one["kind"] != _UNPUBLISHED:
            kubernetes_validate.validate(one, version, strict=True)


def test_a_misspelt_key_would_be_noticed() -> None:
    one = dict(of_kind(rendered(folder_of("base")), "DaemonSet"))
    one["spec"] = one["spec"] | {"updateStratgy": {}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, "1.37", strict=True)


@pytest.mark.parametrize("overlay", ["base", *OVERLAYS])
def test_the_daemon_accepts_every_document(overlay: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    for one in rendered(folder_of(overlay)):
        if one["kind"] == "ConfigMap":
            file.write_text(one["data"]["config.yaml"])

            assert main(["check", "--topology", "2s2n2c2t memory=8Gi", str(file)]) == 0


def twice_in(data: object) -> list[object]:
    """Return the items that a list within *data* has twice."""
    match data:
        case dict():
            return [found for one in data.values() for found in twice_in(one)]
        case list():
            texts = [json.dumps(one, sort_keys=True, default=str) for one in data]
            repeated = [one for one, count in Counter(texts).items() if count > 1]
            return [*repeated, *(found for one in data for found in twice_in(one))]
        case _:
            return []


@pytest.mark.parametrize(
    "file",
    [pytest.param(one, id=str(one.relative_to(MANIFESTS))) for one in manifests()],
)
def test_no_list_has_an_item_twice(file: Path) -> None:
    documents = yaml.safe_load_all(file.read_text(encoding="utf-8"))

    assert [found for one in documents for found in twice_in(one)] == []


def test_all_components_go_together() -> None:
    used = (folder_of("everything") / "kustomization.yaml").read_text()

    assert {name for name in COMPONENTS if f"components/{name}\n" in used} == {
        *COMPONENTS
    }


def test_a_node_belongs_to_one_group() -> None:
    objects = rendered(folder_of("node-group"))
    others, group = (one["spec"] for one in objects if one["kind"] == "DaemonSet")
    pod, group_pod = others["template"]["spec"], group["template"]["spec"]
    name = group_pod["nodeSelector"]["config.nri/group"]

    assert expressions_of(pod) == [
        {"key": "config.nri/group", "operator": "NotIn", "values": [name]}
    ]
    assert others["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "nri-resmgr",
        "app.kubernetes.io/instance": "default",
    }
    assert group["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "nri-resmgr",
        "app.kubernetes.io/instance": name,
    }
    assert {
        volume["configMap"]["name"]
        for one in (pod, group_pod)
        for volume in one["volumes"]
        if "configMap" in volume
    } == {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}


def expressions_of(pod: dict[str, Any]) -> Any:
    affinity = pod["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    return term["matchExpressions"]


def test_openshift_allows_exactly_what_the_pod_needs() -> None:
    objects = rendered(folder_of("openshift"))
    allowed = of_kind(objects, _UNPUBLISHED)
    needed = constraints_of(of_kind(objects, "DaemonSet")["spec"]["template"]["spec"])

    assert {key: allowed[key] for key in needed} == needed
    assert of_kind(objects, "Role")["rules"] == [
        {
            "apiGroups": ["security.openshift.io"],
            "resources": ["securitycontextconstraints"],
            "resourceNames": [allowed["metadata"]["name"]],
            "verbs": ["use"],
        }
    ]
    account = of_kind(objects, "ServiceAccount")["metadata"]
    assert of_kind(objects, "RoleBinding")["subjects"] == [
        {
            "kind": "ServiceAccount",
            "name": account["name"],
            "namespace": account["namespace"],
        }
    ]


def constraints_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["containers"]
    context = container["securityContext"]
    volumes = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    profile = context["seccompProfile"]["type"]
    return {
        "allowHostDirVolumePlugin": "hostPath" in volumes,
        "allowHostIPC": pod.get("hostIPC", False),
        "allowHostNetwork": pod.get("hostNetwork", False),
        "allowHostPID": pod.get("hostPID", False),
        "allowHostPorts": any("hostPort" in port for port in container["ports"]),
        "allowPrivilegedContainer": context["privileged"],
        "allowPrivilegeEscalation": context["allowPrivilegeEscalation"],
        "allowedCapabilities": context["capabilities"]["add"],
        "requiredDropCapabilities": context["capabilities"]["drop"],
        "readOnlyRootFilesystem": context["readOnlyRootFilesystem"],
        "runAsUser": {"type": "RunAsAny"},  # root
        "seLinuxContext": {"type": "MustRunAs"} | pod["securityContext"],
        "seccompProfiles": [{"RuntimeDefault": "runtime/default"}[profile]],
        "volumes": sorted(volumes),
    }
