"""The chart says what the kustomizations say, and refuses unknown values."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema
import kubernetes_validate
import pytest
import yaml

from nri_resmgr.cli.main import build_parser, main
from tests.deploy.helm import CHART, NotRendered, Release
from tests.deploy.kubectl import (
    COMPONENTS,
    MANIFESTS,
    OPTIONS,
    of_kind,
    rendered,
    with_parts,
)
from tests.deploy.pod import arguments_of
from tests.docs.chart import described

# The first one may have to fetch a compiler and build what renders.
pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

VALUES: Final = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Final = json.loads((CHART / "values.schema.json").read_text())
ADMISSION: Final = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
MUTATING: Final = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
# Of other projects, which publish no schema with those of Kubernetes.
UNPUBLISHED: Final = {
    *("Certificate", "Issuer", "PodMonitor", "PrometheusRule"),
    "SecurityContextConstraints",
}
# What Helm's users expect besides, and which pods are meant by it.
_ONLY_HELM: Final = (
    *("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"),
    "helm.sh/resource-policy",
)
_INSTANCE: Final = "app.kubernetes.io/instance"
_NAMES: Final = (
    {"app.kubernetes.io/name": "nri-resmgr"},
    {"app.kubernetes.io/name": "nri-resmgr-webhook"},
)
_KEYS: Final = {"volumes": "name", "volumeMounts": "mountPath", "env": "name"}


def camel(name: str) -> str:
    first, *more = name.split("-")
    return first + "".join(word.capitalize() for word in more)


def comparable(value: Any) -> Any:
    """Return an object without what the two ways of installing rightly differ in."""
    match value:
        case {"kind": "ConfigMap", "data": {"config.yaml": text}, **rest}:
            return comparable(rest | {"data": yaml.safe_load(text)})
        case {"kind": "SecurityContextConstraints", "metadata": metadata, **rest}:
            # kustomize does not know that these are in no namespace.
            return comparable(rest | {"metadata": {"name": metadata["name"]}})
        case dict():
            return {
                key: _in_order(key, comparable(one))
                for key, one in value.items()
                if key not in (*_ONLY_HELM, _INSTANCE)
                and one != {"helm.sh/resource-policy": "keep"}
                # The kustomizations have no labels on what nothing selects.
                and (key != "labels" or comparable(one) not in _NAMES)
            }
        case list():
            return [comparable(one) for one in value]
    return value


def _in_order(key: str, value: Any) -> Any:
    match value:
        case [dict(), *_] if key in _KEYS:
            return sorted(value, key=lambda one: one[_KEYS[key]])
    return value


def by_name(objects: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {
        f"{one['kind']} {one['metadata']['name']}": comparable(one) for one in objects
    }


def test_the_default_chart_equals_the_cluster_kustomization() -> None:
    assert by_name(Release().render()) == by_name(rendered(MANIFESTS / "cluster"))


def test_without_the_agent_it_is_the_base() -> None:
    chart = Release().render(agent={"enabled": False}, crds={"install": False})

    assert by_name(chart) == by_name(rendered(MANIFESTS / "base"))


def test_on_openshift_without_the_agent_it_is_the_overlay() -> None:
    chart = Release().render(
        agent={"enabled": False},
        crds={"install": False},
        openshift={"enabled": True},
        features={"selinux": True},
    )

    assert by_name(chart) == by_name(rendered(MANIFESTS / "overlays" / "openshift"))


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_feature_is_the_component_of_its_name(component: str, tmp_path: Path) -> None:
    chart = Release().render(features={camel(component): True})

    parts = [MANIFESTS / "components" / component]
    assert by_name(chart) == by_name(with_parts(tmp_path, *parts, base="cluster"))


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_the_part_of_its_name(option: str, tmp_path: Path) -> None:
    values: dict[str, dict[str, Any]] = {
        "admission-policy": {},
        "config-maps": {"agent": {"source": "config-maps"}},
        "dra": {"dra": {"enabled": True}},
        "enable-runtime": {"enableRuntime": {"enabled": True}},
        "node-resource-topology": {"crds": {"nodeResourceTopology": True}},
        "node-status": {"rbac": {"nodeStatus": True}},
        "openshift": {"openshift": {"enabled": True}, "features": {"selinux": True}},
        "pod-monitor": {"podMonitor": {"enabled": True}},
        "prometheus-rule": {"prometheusRule": {"enabled": True}},
        "requests-policy": {"requestsPolicy": {"enabled": True}},
        "startup-taint": {"agent": {"startupTaint": "nri-resmgr.io/not-ready"}},
        "webhook": {"webhook": {"enabled": True}},
    }
    policies = {"admission-policy": ADMISSION, "requests-policy": MUTATING}
    kinds = (policies[option],) if option in policies else ()
    chart = Release(kinds=kinds).render(**values[option])

    parts = [MANIFESTS / "options" / option]
    assert by_name(chart) == by_name(with_parts(tmp_path, *parts, base="cluster"))


def test_all_features_go_together(tmp_path: Path) -> None:
    chart = Release().render(features=dict.fromkeys(VALUES["features"], True))
    parts = [MANIFESTS / "components" / name for name in COMPONENTS]
    container = of_kind(chart, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    more = by_name(with_parts(tmp_path, *parts, base="cluster"))["DaemonSet nri-resmgr"]
    added = container["securityContext"]["capabilities"]
    expected = more["spec"]["template"]["spec"]["containers"][0]

    assert set(added["add"]) == set(expected["securityContext"]["capabilities"]["add"])
    assert comparable(container["volumeMounts"]) is not None
    assert {m["mountPath"] for m in container["volumeMounts"]} == {
        m["mountPath"] for m in expected["volumeMounts"]
    }


@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param(
            {
                "enableRuntime": {"enabled": True},
                "imagePullSecrets": [{"name": "registry"}],
                "features": dict.fromkeys(VALUES["features"], True),
                "openshift": {"enabled": True},
                "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
                "prometheusRule": {"enabled": True, "labels": {"release": "p"}},
                "affinity": {"nodeAffinity": {}},
                "podLabels": {"a": "b"},
                "podAnnotations": {"c": "d"},
                "serviceAccount": {"name": "other", "annotations": {"e": "f"}},
                "agent": {
                    "namespace": "documents",
                    "extraArgs": ["--log-level=debug"],
                    "extraEnv": [{"name": "A", "value": "b"}],
                },
                "daemon": {"extraArgs": ["--log-level=debug"]},
                "webhook": {
                    "enabled": True,
                    "validate": True,
                    "excludedNamespaces": [],
                    "extraArgs": ["--log-level=debug"],
                    "extraEnv": [{"name": "A", "value": "b"}],
                },
                "fullnameOverride": "named",
            },
            id="everything",
        ),
        pytest.param(
            {
                "webhook": {
                    "enabled": True,
                    "certificates": {"source": "cert-manager"},
                }
            },
            id="cert-manager",
        ),
    ],
)
def test_every_object_is_valid_by_the_published_schema(
    values: dict[str, Any], version: str
) -> None:
    jsonschema.validate(merged(VALUES, values), SCHEMA)
    objects = Release(kinds=(ADMISSION,), namespace="nodes").render(**values)

    assert len({(one["kind"], one["metadata"]["name"]) for one in objects}) == len(
        objects
    )
    for one in objects:
        if one["kind"] not in UNPUBLISHED:
            kubernetes_validate.validate(one, version, strict=True)


def merged(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: merged(values[key], one)
        for key, one in more.items()
        if isinstance(one, dict) and isinstance(values.get(key), dict)
    }
    return {**values, **more, **both}


def test_names_follow_the_release_and_its_namespace() -> None:
    objects = Release(name="own", namespace="nodes", kinds=(ADMISSION,)).render(
        agent={"namespace": "documents"}, crds={"install": False}
    )
    policy = of_kind(objects, "ValidatingAdmissionPolicy")
    (condition,) = policy["spec"]["matchConditions"]

    assert {one["metadata"]["name"] for one in objects} == {"own"}
    assert {
        one["kind"]: one["metadata"].get("namespace")
        for one in objects
        if "namespace" in one["metadata"]
    } == {
        "ConfigMap": "nodes",
        "DaemonSet": "nodes",
        "NetworkPolicy": "nodes",
        "Role": "documents",
        "RoleBinding": "documents",
        "ServiceAccount": "nodes",
    }
    assert condition["expression"] == (
        "request.userInfo.username == 'system:serviceaccount:nodes:own'"
    )
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert of_kind(objects, kind)["subjects"] == [
            {"kind": "ServiceAccount", "name": "own", "namespace": "nodes"}
        ]


def test_the_policy_of_admission_is_only_for_clusters_that_know_it() -> None:
    kinds = {one["kind"] for one in Release(kinds=()).render()}

    assert not any(kind.startswith("ValidatingAdmission") for kind in kinds)


def test_the_agent_may_remove_the_taint_of_its_flag_only() -> None:
    key = "example.com/starting"
    objects = Release(kinds=(ADMISSION,)).render(agent={"startupTaint": key})
    _, agent = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    spec = of_kind(objects, "ValidatingAdmissionPolicy")["spec"]
    named = [one for one in spec["validations"] if "t.key" in one["expression"]]

    assert f"--startup-taint={key}" in agent["args"]
    assert [f"t.key == '{key}'" in one["expression"] for one in named] == [True]


PEM: Final = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


def webhook_with(**values: object) -> tuple[dict[str, Any], ...]:
    return Release().render(
        webhook={"enabled": True, **values}, crds={"install": False}
    )


def test_the_webhook_is_off_by_default() -> None:
    objects = Release(kinds=(MUTATING,)).render(crds={"install": False})

    assert not any("Mutating" in one["kind"] for one in objects)
    assert not any("webhook" in one["metadata"]["name"] for one in objects)


def test_a_policy_that_the_cluster_does_not_know_is_refused() -> None:
    with pytest.raises(NotRendered, match=r"use webhook\.enabled"):
        Release().render(requestsPolicy={"enabled": True})


def test_the_policy_of_requests_has_the_releases_name_and_namespaces() -> None:
    values = {"enabled": True, "excludedNamespaces": ["a", "b"]}
    objects = Release(name="own", kinds=(MUTATING,)).render(requestsPolicy=values)
    binding = of_kind(objects, "MutatingAdmissionPolicyBinding")
    policy = of_kind(objects, "MutatingAdmissionPolicy")["metadata"]["name"]
    (one,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]

    assert (binding["spec"]["policyName"], policy) == ("own-requests", "own-requests")
    assert one["values"] == ["a", "b"]
    for version in ("1.36", "1.37"):
        for found in objects:
            if found["kind"].startswith("MutatingAdmission"):
                kubernetes_validate.validate(found, version, strict=True)


def test_certificates_by_cert_manager_need_no_token() -> None:
    certificates = {"source": "cert-manager"}
    objects = webhook_with(certificates=certificates, validate=True)
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    certificate = of_kind(objects, "Certificate")["spec"]
    secret = certificate["secretName"]

    assert [one["name"] for one in pod["containers"]] == ["webhook"]
    assert pod["volumes"][0]["secret"] == {"secretName": secret}
    assert certificate["dnsNames"] == ["nri-resmgr-webhook.kube-system.svc"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert of_kind(objects, kind)["metadata"]["annotations"] == {
            "cert-manager.io/inject-ca-from": "kube-system/nri-resmgr-webhook"
        }
    assert "Secret" not in {one["kind"] for one in objects}


def test_given_certificates_are_named_and_trusted() -> None:
    certificates = {"source": "given", "secretName": "mine", "caBundle": PEM}
    objects = webhook_with(certificates=certificates)
    (hook,) = of_kind(objects, "MutatingWebhookConfiguration")["webhooks"]
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]

    assert base64.b64decode(hook["clientConfig"]["caBundle"]).decode() == PEM
    assert pod["volumes"][0]["secret"] == {"secretName": "mine"}
    for missing in ("secretName", "caBundle"):
        with pytest.raises(NotRendered, match=f"{missing} is needed"):
            webhook_with(certificates={**certificates, missing: ""})


def test_no_pod_waits_for_a_webhook_that_is_away() -> None:
    objects = webhook_with(validate=True)
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    hooks = [one for kind in kinds for one in of_kind(objects, kind)["webhooks"]]

    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    assert hooks
    assert {one["failurePolicy"] for one in hooks} == {"Ignore"}
    assert {one["timeoutSeconds"] for one in hooks} == {2}


@pytest.mark.parametrize("validate", [False, True])
def test_the_webhook_has_existing_flags(*, validate: bool) -> None:
    objects = webhook_with(validate=validate)
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    webhook, certificates = (
        build_parser({}).parse_args(arguments_of(one, "10.0.0.7"))
        for one in pod["containers"]
    )
    name = "nri-resmgr-webhook"
    rule = next(
        one["rules"][0]
        for one in objects
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == name
    )
    service = of_kind(objects, "Service")["spec"]

    assert webhook.tls_cert == f"{certificates.folder}/tls.crt"
    assert webhook.tls_key == f"{certificates.folder}/tls.key"
    assert bool(webhook.validate_with) is validate
    assert (certificates.mutating, certificates.validating) == (
        *(name, name if validate else ""),
    )
    kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    assert rule == {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": kinds if validate else kinds[:1],
        "resourceNames": [name],
        "verbs": ["get", "patch"],
    }
    # Only what makes certificates has a token, and neither has more than its folder.
    mounts = [
        {m["mountPath"] for m in one["volumeMounts"]} for one in pod["containers"]
    ]
    token = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
    assert [token in one for one in mounts] == [False, True]
    # The DaemonSet's pods and the webhook's do not select each other.
    daemon = of_kind(objects, "DaemonSet")["spec"]["selector"]["matchLabels"]
    labels = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert not daemon.items() <= labels.items()
    assert service["ports"][0]["targetPort"] == "https"


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"image": {"tag": 1}}, "image.tag"),
        ({"features": {"rdt": True}}, "features"),
        ({"agent": {"source": "configmaps"}}, "agent.source"),
        ({"agent": {"extraArgs": ["log-level"]}}, "agent.extraArgs.0"),
        ({"agent": {"startupTaint": "a.io/b:NoSchedule"}}, "agent.startupTaint"),
        ({"config": {"kind": "TopologyAwarePolicy"}}, "config"),
        ({"podMonitor": {"interval": "30"}}, "podMonitor.interval"),
        ({"tolerations": {}}, "tolerations"),
        ({"daemonset": {}}, ""),
    ],
)
def test_unknown_and_wrong_values_are_refused(
    values: dict[str, Any], where: str
) -> None:
    with pytest.raises(jsonschema.ValidationError) as refused:
        jsonschema.validate(values, SCHEMA)

    assert ".".join(map(str, refused.value.absolute_path)) == where


def test_the_schema_and_the_table_know_all_values() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    meanings = dict(described((CHART / "values.yaml").read_text()))

    def check(
        values: Mapping[str, Any], schema: dict[str, Any], path: tuple[str, ...]
    ) -> None:
        if "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
        assert set(values) == set(schema["properties"]) - {"global"}, path
        for key, one in values.items():
            below = schema["properties"][key]
            if (*path, key) not in meanings:
                check(one, below, (*path, key))

    check(VALUES, SCHEMA, ())


def test_the_daemon_accepts_the_document(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(of_kind(Release().render(), "ConfigMap")["data"]["config.yaml"])

    assert main(["check", "--topology", "2s2n2c2t memory=8Gi", str(file)]) == 0


def test_an_account_that_is_not_made_has_to_be_named() -> None:
    with pytest.raises(NotRendered, match=r"serviceAccount\.name is needed"):
        Release().render(serviceAccount={"create": False})


def test_openshift_needs_its_type_of_process() -> None:
    with pytest.raises(NotRendered, match=r"openshift\.enabled needs"):
        Release().render(openshift={"enabled": True})


@pytest.mark.parametrize(
    "features",
    [(), *((name,) for name in VALUES["features"]), tuple(VALUES["features"])],
    ids="+".join,
)
@pytest.mark.parametrize("switched", [False, True], ids=["", "enable-runtime"])
def test_openshift_allows_exactly_what_the_pod_needs(
    features: tuple[str, ...], *, switched: bool
) -> None:
    objects = Release().render(
        openshift={"enabled": True},
        enableRuntime={"enabled": switched},
        features=dict.fromkeys(features, True) | {"selinux": True},
    )
    constraints = of_kind(objects, "SecurityContextConstraints")
    constraints["allowedCapabilities"].sort()
    pod = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]
    contexts = [
        one["securityContext"] for one in (*pod["initContainers"], *pod["containers"])
    ]
    volumes = {kind for volume in pod["volumes"] for kind in volume} - {"name"}
    wanted = {
        "allowHostPID": pod.get("hostPID", False),
        "allowPrivilegedContainer": any(one["privileged"] for one in contexts),
        "allowPrivilegeEscalation": any(
            one["allowPrivilegeEscalation"] for one in contexts
        ),
        "allowedCapabilities": sorted(
            {name for one in contexts for name in one["capabilities"].get("add", ())}
        ),
        "volumes": sorted(volumes),
        "seLinuxContext": {"type": "MustRunAs"} | pod["securityContext"],
    }

    assert {key: constraints[key] for key in wanted} == wanted


@pytest.mark.parametrize("wanted", [False, True])
def test_a_restart_is_by_the_init_container_without_apparmor(*, wanted: bool) -> None:
    values = {"enabled": True, "restart": wanted}
    pod = of_kind(Release().render(enableRuntime=values), "DaemonSet")["spec"]
    template = pod["template"]
    first, *_ = template["spec"]["initContainers"]
    notes = Release().notes(enableRuntime=values)
    key = "container.apparmor.security.beta.kubernetes.io/enable-runtime"

    assert first["name"] == "enable-runtime"
    assert ("--restart" in first["args"]) is wanted
    assert (key in template["metadata"]["annotations"]) is wanted
    assert ("is restarted" in notes, "Restart each" in notes) == (wanted, not wanted)


KIND: Final = "CustomResourceDefinition"
CRD: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": KIND,
    "metadata": {"name": "samples.config.nri", "annotations": {"kept": "yes"}},
    "spec": {"group": "config.nri"},
}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A chart with one definition, beside a file that is none."""
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart, symlinks=True)
    (chart / "files" / "crds").unlink()
    (chart / "files" / "crds").mkdir()
    (chart / "files" / "crds" / "sample.yaml").write_text(yaml.safe_dump(CRD))
    (chart / "files" / "crds" / "other.yaml").write_text("kind: Kustomization")
    for link in CHART.joinpath("files").glob("*.yaml"):
        (chart / "files" / link.name).unlink()
        shutil.copy(link, chart / "files")
    return Release(chart=chart)


def found_in(release: Release, found: dict[str, Any] | None) -> Release:
    key = "apiextensions.k8s.io/v1/CustomResourceDefinition//samples.config.nri"
    objects = {} if found is None else {key: found}
    return Release(chart=release.chart, objects=objects)


def test_links_of_alerts_begin_where_the_repository_can_be_read() -> None:
    rule = {"enabled": True, "runbooks": "https://r.example/n/blob/main"}
    group, *_ = of_kind(Release().render(prometheusRule=rule), "PrometheusRule")[
        "spec"
    ]["groups"]

    link = group["rules"][0]["annotations"]["runbook_url"]
    page = "docs/monitoring.md#nriresmgrdown"
    assert link == f"https://r.example/n/blob/main/{page}"
    jsonschema.validate(merged(VALUES, {"prometheusRule": rule}), SCHEMA)


def test_definitions_are_upgraded_and_stay(release: Release) -> None:
    ours = {"metadata": {"annotations": {"meta.helm.sh/release-name": "nri-resmgr"}}}
    for found in (None, CRD | ours):
        crd = of_kind(found_in(release, found).render(), KIND)

        assert crd["spec"] == CRD["spec"]
        assert crd["metadata"]["annotations"] == {
            "kept": "yes",
            "helm.sh/resource-policy": "keep",
        }


def test_definitions_of_others_are_left_alone(release: Release) -> None:
    objects = found_in(release, CRD).render()

    assert KIND not in {one["kind"] for one in objects}


def test_all_files_of_definitions_are_applied_in_both_ways() -> None:
    folder = MANIFESTS.parent / "crds"
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())
    chart = {
        one["metadata"]["name"] for one in Release().render() if one["kind"] == KIND
    }

    assert set(listed.get("resources", ())) == files
    assert chart == {
        yaml.safe_load((folder / name).read_text())["metadata"]["name"]
        for name in files
    }


def test_the_notes_name_the_next_steps() -> None:
    notes = Release(namespace="nodes").notes()

    assert "<no value>" not in notes
    assert "kubectl -n nodes rollout status daemonset/nri-resmgr" in notes
    assert "add nodes to\nreservedPoolNamespaces" in notes
