"""The pod has what the daemon's flags say, and no privilege that is not documented."""

from __future__ import annotations

import argparse
import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from nri_resmgr.cli import run
from nri_resmgr.cli.main import build_parser
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.runtimes.switch import TOLERATED
from nri_resmgr.stub.transport import DEFAULT_SOCKET
from nri_resmgr.values import parse_bytes
from tests.deploy.kubectl import (
    COMPONENTS,
    MANIFESTS,
    OVERLAYS,
    of_kind,
    rendered,
    with_component,
)
from tests.deploy.pod import (
    HOST_ROOT,
    arguments_of,
    container_of,
    host_mounts,
    pod_of,
    rights_of,
)
from tests.deploy.readme import block_below, table_below, words_of
from tests.soak.memory_cgroup import SHIPPED_LIMIT

pytestmark = pytest.mark.process


@pytest.fixture
def base() -> dict[str, Any]:
    return pod_of(rendered(MANIFESTS / "base"))


def options_of(pod: dict[str, Any], address: str = "10.0.0.7") -> argparse.Namespace:
    container = container_of(pod)
    assert container["command"] == ["nri-resmgr"]
    return build_parser({}).parse_args(arguments_of(container, address))


def test_the_pod_runs_an_existing_command_with_existing_flags(
    base: dict[str, Any],
) -> None:
    options = options_of(base)

    assert options.command is run.run
    assert options.host_root == HOST_ROOT
    assert container_of(base)["env"] == [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    ]


def test_the_paths_of_flags_are_mounted(base: dict[str, Any]) -> None:
    options = options_of(base)
    mounts = {mount["mountPath"]: mount for mount in container_of(base)["volumeMounts"]}
    config = of_kind(rendered(MANIFESTS / "base"), "ConfigMap")
    file = PurePosixPath(options.config_file)
    control = PurePosixPath(options.control_socket)

    assert {
        path: not mount.get("readOnly", False)
        for path, mount in mounts.items()
        if not path.startswith(f"{HOST_ROOT}/")
    } == {
        str(PurePosixPath(DEFAULT_SOCKET).parent): False,
        str(file.parent): False,
        options.state_dir: True,
        options.run_dir: True,
        f"{options.kubelet_dir}/pods-api": False,
        f"{options.kubelet_dir}/pod-resources": False,
    }
    assert str(control.parent) == options.run_dir
    assert list(config["data"]) == [file.name]
    assert {"name": "config", "configMap": {"name": config["metadata"]["name"]}} in (
        base["volumes"]
    )


def test_the_memory_limit_is_that_of_the_soak_test(base: dict[str, Any]) -> None:
    limit = container_of(base)["resources"]["limits"]["memory"]

    assert parse_bytes(limit) == SHIPPED_LIMIT


def test_no_single_file_of_a_config_map_is_mounted(base: dict[str, Any]) -> None:
    """The kubelet never changes such a file."""
    assert not any("subPath" in m for m in container_of(base)["volumeMounts"])


@pytest.mark.parametrize("address", ["10.0.0.7", "fd00::7"])
def test_probes_ask_where_the_daemon_answers(
    address: str, base: dict[str, Any]
) -> None:
    container, options = container_of(base), options_of(base, address)
    endpoint = read_endpoint("--http-endpoint", options.http_endpoint)
    health = read_endpoint("--health-endpoint", options.health_endpoint)
    template = of_kind(rendered(MANIFESTS / "base"), "DaemonSet")["spec"]["template"]

    assert (endpoint.address, health.address) == (address, address)
    assert container["ports"] == [
        {"name": "http", "containerPort": endpoint.port},
        {"name": "health", "containerPort": health.port},
    ]
    assert {
        kind: container[kind]["httpGet"]
        for kind in ("startupProbe", "livenessProbe", "readinessProbe")
    } == {
        "startupProbe": {"path": "/healthz", "port": "health"},
        "livenessProbe": {"path": "/healthz", "port": "health"},
        "readinessProbe": {"path": "/readyz", "port": "health"},
    }
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(endpoint.port),
        f"{TOLERATED}/pod": "true",
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_other_pods_reach_only_the_metrics_and_only_from_the_monitoring(
    overlay: str,
) -> None:
    objects = rendered(MANIFESTS / "overlays" / overlay)
    policies = [one for one in objects if one["kind"] == "NetworkPolicy"]
    pods = [one["spec"]["template"] for one in objects if one["kind"] == "DaemonSet"]
    for policy in policies:
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        assert policy["spec"]["ingress"] == [
            {
                "from": [
                    {
                        "namespaceSelector": {
                            "matchLabels": {"kubernetes.io/metadata.name": "monitoring"}
                        }
                    }
                ],
                "ports": [{"protocol": "TCP", "port": "http"}],
            }
        ]

    selectors = [one["spec"]["podSelector"]["matchLabels"] for one in policies]
    assert {one["metadata"]["namespace"] for one in policies} == {"kube-system"}
    for pod in pods:
        labels = pod["metadata"]["labels"].items()
        assert any(one.items() <= labels for one in selectors)
        # To a pod on the host's network no NetworkPolicy applies.
        assert "hostNetwork" not in pod["spec"]


def test_the_base_has_no_rights_but_to_be_root(base: dict[str, Any]) -> None:
    assert container_of(base)["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": []},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert rights_of(base) == {
        f"{path} ({how})" for path, how in host_mounts(base).items()
    }
    assert base["automountServiceAccountToken"] is False


def test_the_base_mounts_the_documented_directories(
    base: dict[str, Any],
) -> None:
    expected = {
        path.strip("`"): how for path, how, _ in table_below("Directory of the node")
    }

    assert host_mounts(base) == expected


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_adds_the_documented_rights(
    component: str, base: dict[str, Any], tmp_path: Path
) -> None:
    pod = pod_of(with_component(tmp_path, component))
    (expected,) = (
        words_of(needs)
        for name, _, needs in table_below("Component")
        if name == f"`{component}`"
    )

    assert rights_of(pod) - rights_of(base) == expected


def test_the_pod_works_without_writable_cgroups(
    base: dict[str, Any], tmp_path: Path
) -> None:
    more = yaml.safe_load(block_below("Without write access to cgroups", "yaml"))
    resources = {"resources": [os.path.relpath(MANIFESTS / "base", tmp_path)]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(resources | more))
    pod = pod_of(rendered(tmp_path))
    variables = {
        one["name"]: one["value"] for one in container_of(pod)["env"] if "value" in one
    }

    assert build_parser(variables).parse_args(["run"]).apply_updates == "runtime"
    assert host_mounts(pod) == host_mounts(base) | {"/sys/fs/cgroup": "read-only"}
    assert host_mounts(base)["/sys/fs/cgroup"] == "writable"


def test_the_readme_names_all_components_and_overlays() -> None:
    assert {name.strip("`") for name, *_ in table_below("Component")} == {*COMPONENTS}
    assert {name.strip("`") for name, *_ in table_below("Overlay")} == {*OVERLAYS}


@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name != "node-group"])
def test_files_of_the_host_keep_their_paths_below_the_root(overlay: str) -> None:
    pod = pod_of(rendered(MANIFESTS / "overlays" / overlay))
    paths = {v["name"]: v["hostPath"] for v in pod["volumes"] if "hostPath" in v}

    for mount in container_of(pod)["volumeMounts"]:
        if mount["name"] in paths:
            path = paths[mount["name"]]["path"]
            assert mount["mountPath"] in {path, f"{HOST_ROOT}{path}"}


def test_paths_that_may_be_recreated_are_mounted_by_their_directory() -> None:
    """A mounted socket is the old one after a restart of the runtime."""
    pod = pod_of(rendered(MANIFESTS / "overlays" / "everything"))

    assert {
        v["hostPath"]["path"]: v["hostPath"]["type"]
        for v in pod["volumes"]
        if v.get("hostPath", {}).get("type", "Directory")
        not in {"Directory", "DirectoryOrCreate"}
    } == {"/dev/isst_interface": "CharDevice"}


def test_the_node_s_pods_go_before_others(base: dict[str, Any]) -> None:
    assert (base["priorityClassName"], base["tolerations"]) == (
        "system-node-critical",
        [{"operator": "Exists"}],
    )
    assert "cpu" not in container_of(base)["resources"]["limits"]
