"""The agent has the cluster's token and no privileges, the daemon the opposite."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.cli.main import build_parser
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.process.endpoint import read_endpoint
from tests.deploy.kubectl import MANIFESTS, of_kind, rendered, with_parts
from tests.deploy.pod import arguments_of

pytestmark = pytest.mark.process

TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
SPOOL: Final = "/var/lib/nri-resmgr-agent"


def pod_of(folder: str) -> dict[str, Any]:
    objects = rendered(MANIFESTS / folder)
    pod: dict[str, Any] = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]
    return copy.deepcopy(pod)


def mounts_of(container: dict[str, Any]) -> dict[str, bool]:
    """Return what is mounted where, and whether it is writable."""
    return {
        mount["mountPath"]: not mount.get("readOnly", False)
        for mount in container["volumeMounts"]
    }


def test_daemon_and_agent_have_existing_flags() -> None:
    containers = pod_of("cluster")["containers"]
    daemon, agent = (
        build_parser({}).parse_args(arguments_of(one, "10.0.0.7")) for one in containers
    )
    file = "/etc/nri-resmgr/config.yaml"

    assert (daemon.spool, daemon.fallback_config, daemon.config_file) == (
        *(SPOOL, file, None),
    )
    assert (agent.spool, agent.source) == (SPOOL, "custom-resources")
    assert {
        one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"]
        for one in containers[1]["env"]
    } == {"NODE_NAME": "spec.nodeName", "POD_IP": "status.podIP"}
    assert agent.control_socket == daemon.control_socket
    assert daemon.control_socket.startswith("/run/nri-resmgr/")


def test_the_agent_of_the_startup_taint_has_an_existing_flag_and_a_right(
    tmp_path: Path,
) -> None:
    names = ("startup-taint", "admission-policy")
    parts = [MANIFESTS / "options" / name for name in names]
    objects = with_parts(tmp_path, *parts, base="cluster")
    daemon, agent = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"][
        "containers"
    ]
    options = build_parser({}).parse_args(arguments_of(agent, "10.0.0.7"))
    rights = [
        rule["verbs"]
        for rule in of_kind(objects, "ClusterRole")["rules"]
        if (rule["apiGroups"], rule["resources"]) == ([""], ["nodes"])
    ]
    policy = of_kind(objects, "ValidatingAdmissionPolicy")["spec"]["validations"]

    assert options.startup_taint == "nri-resmgr.io/not-ready"
    assert not any("startup-taint" in one for one in daemon["args"])
    assert ["patch"] in rights
    # With that taint of its own node alone.
    one = f"|| t.key == '{options.startup_taint}')"
    assert sum(one in rule["expression"] for rule in policy) == 1


@pytest.mark.parametrize("address", ["10.0.0.7", "fd00::7"])
def test_probes_ask_where_the_agent_answers(address: str) -> None:
    daemon, agent = pod_of("cluster")["containers"]
    options = build_parser({}).parse_args(arguments_of(agent, address))
    endpoint = read_endpoint("--http-endpoint", options.http_endpoint)
    health = read_endpoint("--health-endpoint", options.health_endpoint)
    policy = of_kind(rendered(MANIFESTS / "cluster"), "NetworkPolicy")["spec"]
    (rule,) = policy["ingress"]

    assert (endpoint.address, health.address) == (address, address)
    assert agent["ports"] == [
        {"name": "agent-http", "containerPort": endpoint.port},
        {"name": "agent-health", "containerPort": health.port},
    ]
    # Both containers have one network.
    ports = [one["containerPort"] for one in (*daemon["ports"], *agent["ports"])]
    assert len({*ports}) == len(ports)
    assert {
        kind: agent[kind]["httpGet"]
        for kind in ("startupProbe", "livenessProbe", "readinessProbe")
    } == {
        "startupProbe": {"path": "/healthz", "port": "agent-health"},
        "livenessProbe": {"path": "/healthz", "port": "agent-health"},
        "readinessProbe": {"path": "/readyz", "port": "agent-health"},
    }
    assert [one["port"] for one in rule["ports"]] == ["http", "agent-http"]


def test_only_the_agent_has_a_token() -> None:
    pod = pod_of("cluster")
    account = of_kind(rendered(MANIFESTS / "cluster"), "ServiceAccount")
    (token,) = (volume["name"] for volume in pod["volumes"] if "projected" in volume)
    containers = (*pod["initContainers"], *pod["containers"])
    (agent,) = (
        one
        for one in containers
        if token in {mount["name"] for mount in one["volumeMounts"]}
    )

    assert agent["name"] == "agent"
    assert mounts_of(agent)[TOKEN] is False
    assert pod["automountServiceAccountToken"] is False
    assert account["automountServiceAccountToken"] is False


def test_the_agent_has_no_privileges() -> None:
    _, agent = pod_of("cluster")["containers"]

    assert agent["securityContext"] == {
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "runAsNonRoot": True,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert mounts_of(agent) == {SPOOL: True, "/run/nri-resmgr": False, TOKEN: False}


def test_the_daemon_is_that_of_the_base_and_reads_the_spool() -> None:
    daemon, _ = pod_of("cluster")["containers"]
    (base,) = pod_of("base")["containers"]
    file = "/etc/nri-resmgr/config.yaml"
    base["args"][base["args"].index(f"--config-file={file}")] = (
        f"--fallback-config={file}"
    )
    base["args"].append(f"--spool={SPOOL}")
    base["volumeMounts"].append({"name": "spool", "mountPath": SPOOL, "readOnly": True})

    assert daemon == base


def test_the_spool_belongs_to_the_agent_before_both_start() -> None:
    pod = pod_of("cluster")
    (spool,) = pod["initContainers"]
    agent = pod["containers"][1]["securityContext"]
    owner = f"{agent['runAsUser']}, {agent['runAsGroup']}"

    assert spool["args"] == [f"import os; os.chown('{SPOOL}', {owner})"]
    assert mounts_of(spool) == {SPOOL: True}
    assert spool["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["CHOWN"],
    }


def test_the_role_has_all_kinds_of_documents() -> None:
    plurals = {f"{kind.removesuffix('y').lower()}ies" for kind in BUILT_IN}
    read, written, *_ = of_kind(rendered(MANIFESTS / "cluster"), "Role")["rules"]

    assert set(read["resources"]) == plurals
    assert set(written["resources"]) == {f"{name}/status" for name in plurals}
    assert (read["verbs"], written["verbs"]) == (["get", "list", "watch"], ["patch"])


def test_each_definition_is_of_a_kind_that_the_agent_may_read() -> None:
    objects = rendered(MANIFESTS / "cluster")
    allowed = {
        (group, name)
        for one in objects
        if one["kind"] in {"Role", "ClusterRole"}
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
    }
    option = MANIFESTS / "options/node-resource-topology/definition.yaml"
    for path in (*(MANIFESTS.parent / "crds").glob("*.yaml"), option):
        crd = yaml.safe_load(path.read_text())
        if crd["kind"] == "CustomResourceDefinition":
            spec = crd["spec"]
            assert (spec["group"], spec["names"]["plural"]) in allowed
