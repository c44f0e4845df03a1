"""What an agent builds upon works with this API server as in a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kubernetes.accounts import Account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import Kubectl, KubectlFailed

GROUP: Final = "smoke.nri-resmgr.test"
CRD: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"samples.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Sample", "plural": "samples", "singular": "sample"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "cpus": {"type": "integer", "minimum": 1},
                                    "share": {"type": "boolean", "default": True},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"text": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def samples(kubectl: Kubectl) -> str:
    """Path of a kind's objects in the test's namespace, with a status of their own."""
    kubectl.apply(CRD)
    kubectl("wait", "--for=condition=Established", f"crd/samples.{GROUP}")
    return f"/apis/{GROUP}/v1/namespaces/{kubectl.namespace}/samples"


def sample(name: str, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Sample",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_status_is_apart_from_its_object(
    control_plane: ControlPlane, kubectl: Kubectl, samples: str
) -> None:
    kubectl.apply(sample("one", cpus=2))
    made = control_plane.ask("GET", f"{samples}/one").body
    patch = {"spec": {"cpus": 3}, "status": {"text": "fine"}}
    kind = "application/merge-patch+json"

    changed = control_plane.ask("PATCH", f"{samples}/one/status", patch, kind=kind).body

    assert made["spec"] == {"cpus": 2, "share": True}
    assert (changed["spec"], changed["status"]) == (made["spec"], {"text": "fine"})
    assert changed["metadata"]["generation"] == made["metadata"]["generation"] == 1


def test_a_bad_object_is_refused_with_its_path(kubectl: Kubectl, samples: str) -> None:
    with pytest.raises(KubectlFailed, match=r"spec\.cpus.*greater than or equal to 1"):
        kubectl.apply(sample("bad", cpus=0))


def test_two_managers_of_a_field_are_in_conflict(
    control_plane: ControlPlane, samples: str
) -> None:
    def apply(cpus: int, manager: str) -> int:
        body = sample("shared", cpus=cpus)
        kind = "application/apply-patch+yaml"
        path = f"{samples}/shared?fieldManager={manager}"
        return control_plane.ask("PATCH", path, body, kind=kind).status

    assert [apply(1, "one"), apply(1, "two"), apply(2, "two")] == [201, 200, 409]


def test_a_watch_by_name_has_that_object_only(kubectl: Kubectl, samples: str) -> None:
    kubectl.apply(sample("wanted", cpus=1), sample("other", cpus=1))
    path = f"{samples}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=wanted"

    events = [json.loads(line) for line in kubectl("get", "--raw", path).splitlines()]

    assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [
        ("ADDED", "wanted")
    ]


def test_rights_may_be_for_names_only(
    control_plane: ControlPlane, kubectl: Kubectl, samples: str, account: Account
) -> None:
    kubectl.apply(sample("mine", cpus=1), sample("other", cpus=1))
    account.allow(
        {
            "apiGroups": [GROUP],
            "resources": ["samples"],
            "resourceNames": ["mine"],
            "verbs": ["get", "list", "watch"],
        }
    )
    token = account.token()

    statuses = [
        control_plane.ask("GET", f"{samples}{path}", token=token).status
        for path in (
            *("/mine", "/other", "", "?fieldSelector=metadata.name=mine"),
            "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=mine",
        )
    ]

    assert statuses == [200, 403, 403, 200, 200]
    assert [one.verb for one in account.requests()] == [
        *("get", "get", "list", "list", "watch")
    ]


def test_an_account_without_rights_may_nothing(
    account: Account, tmp_path: Path
) -> None:
    own = account.kubectl(tmp_path / "account.yaml")

    with pytest.raises(KubectlFailed, match=r"Forbidden.*cannot list resource"):
        own("get", "configmaps")


def test_objects_outlive_the_server(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    kubectl("create", "configmap", "kept", "--from-literal=key=value")
    before = control_plane.url

    control_plane.kill()
    with pytest.raises(OSError, match="refused"):
        control_plane.ask("GET", "/readyz")
    control_plane.start()

    assert control_plane.url == before
    assert kubectl.get("configmap", "kept")["data"] == {"key": "value"}


def test_a_new_authority_is_not_trusted_by_clients_of_the_old(
    new_control_plane: Callable[[], ControlPlane], tmp_path: Path
) -> None:
    own = new_control_plane()
    old = tmp_path / "ca.crt"
    old.write_text(own.certificates.authority.read_text())
    own.kill()
    own.certificates.replace_authority()
    own.start()

    assert own.ask("GET", "/readyz").status == 200
    with pytest.raises(KubectlFailed, match="certificate signed by unknown authority"):
        own.kubectl("--certificate-authority", old, "get", "namespaces")
