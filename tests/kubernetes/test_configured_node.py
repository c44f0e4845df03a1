"""A node is configured by its cluster: `kubectl` and a real daemon.

The rows of CRI Resource Manager's and nri-plugins' set-up: which object counts, what is
kept, and what users see of it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nri_resmgr.spool import CONFIGURATION
from nri_resmgr.version import our_version
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.test_insight import metrics
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import KubectlFailed
from tests.kubernetes.nodes import (
    CRDS,
    Node,
    daemon_of,
    place,
    policy,
    status_of,
    until,
)
from tests.kubernetes.roles import CONFIG_MAPS, RULES, RULES_OF_NAMESPACE, Rule

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]


def pins_of(running: RunningDaemon) -> dict[str, str]:
    """Return the CPUs of all containers, as the runtime has them."""
    containers = running.runtime.world.containers.items()
    return {key: one.linux.resources.cpu.cpus for key, one in containers}


async def test_objects_of_each_level_count_and_labels_choose(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node), node.agent():
        await until(lambda: node.reserved() == "3")
        await until(lambda: node.condition()[:2] == ("True", "Accepted"))
        # A labelled node has that of its group, and not the default.
        node.kubectl.apply(policy("group.fast", "cpuset:2"))
        node.label("config.nri/group=fast")
        await until(lambda: node.reserved() == "2")
        node.kubectl.apply(policy(f"node.{node.name}", "cpuset:1"))
        await until(lambda: node.reserved() == "1")
        await until(lambda: node.source() == f"node.{node.name}")
        # Deleting leads back, level by level.
        node.kubectl("delete", "staticpolicy", f"node.{node.name}")
        await until(lambda: node.reserved() == "2")
        node.label("config.nri/group-")
        await until(lambda: node.reserved() == "3")
        await until(lambda: node.source() == "default")


async def test_objects_of_a_group_and_of_all_are_followed_to_their_ends(
    node: Node,
) -> None:
    node.label("config.nri/group=fast")
    node.kubectl.apply(policy("default", "cpuset:3"), policy("group.fast", "cpuset:2"))
    async with daemon_of(node), node.agent():
        await until(lambda: node.reserved() == "2")
        node.kubectl.apply(policy("group.fast", "cpuset:1"))
        await until(lambda: node.reserved() == "1")
        node.kubectl("delete", "staticpolicy", "group.fast")
        # The default is for nodes without a group.
        await until(lambda: node.condition()[1] == "ConfigurationGone")
        assert node.reserved() == "1"
        node.label("config.nri/group-")
        await until(lambda: node.reserved() == "3")
        node.kubectl.apply(policy("default", "cpuset:2"))
        await until(lambda: node.reserved() == "2")
        node.kubectl("delete", "staticpolicy", "default")
        await until(lambda: node.condition()[1] == "ConfigurationGone")

        # What was in force last stays, until there is another one.
        assert node.reserved() == "2"
        node.kubectl.apply(policy("default", "cpuset:1"))
        await until(lambda: node.reserved() == "1")


async def test_a_document_that_is_tried_out_changes_nothing(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:0"))
    flags = ("--http-endpoint", "127.0.0.1:0")
    async with daemon_of(node, *flags) as running, node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        before = pins_of(running)
        # CPU 4 is exclusive to a container.
        node.kubectl.apply(policy("default", "cpuset:4", mode="DryRun"))
        await until(lambda: node.condition()[1] == "DryRun")
        metric = "nri_resmgr_configuration_would_change_containers"

        assert node.status()["mode"] == "DryRun"
        assert "default/web" in node.condition()[2]
        assert (await metrics(running))[metric] >= 1
        assert (node.reserved(), pins_of(running)) == ("0", before)

        node.kubectl.apply(policy("default", "cpuset:4", mode="Enforce"))
        await until(lambda: node.reserved() == "4")
        await until(lambda: node.status()["mode"] == "Enforce")


async def test_a_bad_document_is_named_by_path_and_the_old_one_stays(
    node: Node,
) -> None:
    name = f"node.{node.name}"
    node.kubectl.apply(policy(name, "cpuset:3"))
    async with daemon_of(node), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        # The schema refuses what it can at once ...
        with pytest.raises(KubectlFailed, match="pinCPU"):
            node.kubectl.apply(policy(name, "cpuset:3", pinCPU="perhaps"))
        # ... and the node what only it can know.
        node.kubectl.apply(policy(name, "4711"))
        await until(lambda: node.condition()[1] == "Rejected")

        assert "reservedResources" in node.condition()[2]
        assert node.reserved() == "3"
        entry = node.kubectl.get("staticpolicy", name)["status"]["nodes"][node.name]
        assert (entry["status"], entry["generation"]) == ("Failure", 2)
        assert entry["errors"] == node.condition()[2]

        node.kubectl.apply(policy(name, "cpuset:2"))
        # As a user waits for it.
        node.kubectl(
            *("wait", "--for=condition=Ready", "--timeout=60s", "staticpolicy", name)
        )
        await until(lambda: node.reserved() == "2")


async def test_a_forced_file_makes_the_cluster_s_documents_ineffective(
    node: Node,
) -> None:
    forced = node.folder / "forced.yaml"
    forced.write_text(json.dumps(policy("mine", "cpuset:1")))
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, "--config-file", str(forced)), node.agent():
        await until(lambda: node.condition()[1] == "Overridden")

        assert node.reserved() == "1"
        assert "--config-file" in node.condition()[2]


async def test_the_fallback_counts_until_the_cluster_has_a_document(
    node: Node,
) -> None:
    fallback = node.folder / "fallback.yaml"
    fallback.write_text(json.dumps(policy("mine", "cpuset:1")))
    async with daemon_of(node, "--fallback-config", str(fallback)), node.agent():
        await until(lambda: node.condition()[1] == "NoConfiguration")
        assert node.reserved() == "1"
        node.kubectl.apply(policy("default", "cpuset:3"))
        await until(lambda: node.reserved() == "3")


async def test_the_last_document_counts_at_the_next_start_without_a_cluster(
    node: Node,
) -> None:
    state = ("--state-dir", str(node.folder / "state"))
    fallback = node.folder / "fallback.yaml"
    fallback.write_text(json.dumps(policy("mine", "cpuset:1")))
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, *state), node.agent():
        await until(lambda: node.reserved() == "3")
        await until(lambda: node.condition()[1] == "Accepted")
    # Without agent, folder and API server.
    shutil.rmtree(node.folder / "spool")
    async with daemon_of(node, *state, "--fallback-config", str(fallback)):
        assert node.reserved() == "3"
        assert node.state()["configuration"]["cached"]
    # --reset-config drops it.
    done = nri_resmgr("run", "--reset-config", *state)
    assert (done.returncode, "state.discarded" in done.stderr) == (0, True)
    async with daemon_of(node, *state, "--fallback-config", str(fallback)):
        assert node.reserved() == "1"


async def test_a_switch_of_policies_is_refused_where_that_is_forbidden(
    node: Node,
) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, "--disable-policy-switch"), node.agent():
        await until(lambda: node.condition()[1] == "Rejected")
        assert "--disable-policy-switch" in node.condition()[2]


async def test_config_maps_are_another_source(node: Node) -> None:
    node.account.allow(*RULES_OF_NAMESPACE, CONFIG_MAPS)
    text = json.dumps(policy("mine", "cpuset:3"))
    node.kubectl(
        *("create", "configmap", "cri-resmgr-config.default"),
        f"--from-literal=nri-resmgr.yaml={text}",
    )
    async with daemon_of(node), node.agent("--source", "config-maps"):
        await until(lambda: node.reserved() == "3")
        # By the label and sections of CRI Resource Manager.
        node.kubectl(
            *("create", "configmap", "cri-resmgr-config.group.fast"),
            "--from-literal=policy="
            '{"Active": "static", "ReservedResources": {"CPU": "cpuset:2"}}',
        )
        node.label("cri-resource-manager.intel.com/group=fast")
        await until(lambda: node.reserved() == "2")
        await until(lambda: node.source() == "cri-resmgr-config.group.fast")


async def test_kubectl_shows_the_columns_of_a_node(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node), node.agent():
        await until(lambda: node.condition("Ready")[0] == "True")
        header, line = node.kubectl("get", "nrm", node.name).splitlines()

    columns = dict(zip(header.split(), line.split(), strict=True))
    assert columns.pop("AGE")
    assert columns == {
        "NAME": node.name,
        "POLICY": "StaticPolicy",
        "SOURCE": "default",
        "APPLIED": "True",
        "READY": "True",
    }
    found = node.kubectl.get("nrm", node.name)
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", node.name)
    assert found["status"]["version"] == our_version()


async def test_kubectl_shows_what_a_document_is_for_and_whether_it_counts(
    node: Node,
) -> None:
    name = f"node.{node.name}"
    node.kubectl.apply(
        policy(name, "cpuset:3"), policy("default", "1", "BalloonsPolicy")
    )
    async with daemon_of(node), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        node.kubectl.apply(policy(name, "4711"))
        await until(lambda: node.condition()[1] == "Rejected")
        header, line = node.kubectl("get", "staticpolicy", name).splitlines()
        wide = node.kubectl("get", "staticpolicy", name, "-o", "wide")
        every = node.kubectl("get", "nri")

    columns = dict(zip(header.split(), line.split(), strict=True))
    assert columns.pop("AGE")
    assert columns == {
        "NAME": name,
        "GENERATION": "2",
        "READY": "False",
        "OBSERVED": "2",
    }
    assert "reservedResources" in wide
    found = {one.partition(" ")[0] for one in every.splitlines()}
    assert {
        f"staticpolicy.config.nri/{name}",
        "balloonspolicy.config.nri/default",
    } <= found


@pytest.mark.parametrize(
    "file", sorted(CRDS.glob("*_*.yaml")), ids=lambda file: file.stem
)
def test_kubectl_explains_each_kind(node: Node, file: Path) -> None:
    names = yaml.safe_load(file.read_text())["spec"]["names"]

    found = node.kubectl("explain", f"{names['singular']}.spec")

    assert f"KIND:     {names['kind']}\n" in found
    # A report has no options.
    assert ("FIELDS:" in found) == (names["kind"] != "NodeResourceManager")


async def test_a_refusal_is_an_event_that_describe_finds(node: Node) -> None:
    def events() -> list[Any]:
        found = node.kubectl.within("default").get("events.events.k8s.io")["items"]
        return [one for one in found if node.name in one["note"]]

    # The pods of all tests have the same UIDs, so equal refusals are one event.
    node.kubectl.within("default")("delete", "events.events.k8s.io", "--all")
    async with daemon_of(node), node.agent():
        await until(events)

    (event,) = events()
    assert (event["reason"], event["regarding"]["name"]) == ("ResourcesRefused", "huge")
    assert "asks for 64 exclusive CPUs" in event["note"]


def _id(rule: Rule) -> str:
    return str(rule["resources"][0])


@pytest.mark.parametrize("missing", [*RULES, *RULES_OF_NAMESPACE], ids=_id)
async def test_a_missing_right_is_named(node: Node, missing: Rule) -> None:
    node.account.allow(*(one for one in RULES if one != missing), cluster=True)
    node.account.allow(*(one for one in RULES_OF_NAMESPACE if one != missing))
    agent = {"nodeResourceTopology": True}
    node.kubectl.apply(policy("default", "cpuset:3", agent=agent))
    async with daemon_of(node), node.agent():
        await until(node.missing_rights)

    # Just that rule, and what it allows.
    for group, resource, verb in node.missing_rights():
        assert [group] == missing["apiGroups"]
        assert resource in missing["resources"]
        assert verb in missing["verbs"]


async def test_a_missing_right_to_config_maps_is_named(node: Node) -> None:
    async with daemon_of(node), node.agent("--source", "config-maps"):
        await until(node.missing_rights)

    assert {one[1] for one in node.missing_rights()} == {"configmaps"}


async def test_an_outage_is_logged_once_and_passes(
    node: Node, new_control_plane: object, control_plane: ControlPlane
) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node) as running, node.agent():
        await until(lambda: node.condition("Ready")[0] == "True")
        control_plane.kill()
        await until(lambda: "agent.watch-failing" in node.log())
        await asyncio.sleep(3.0)
        lines = node.log().count("agent.watch-failing")
        await asyncio.sleep(3.0)
        assert await place(running, "later")
        assert "API server last answered" in status_of(node)
        assert node.reserved() == "3"
        assert node.log().count("agent.watch-failing") == lines
        control_plane.start()
        node.kubectl.apply(policy(f"node.{node.name}", "cpuset:1"))
        await until(lambda: node.reserved() == "1", seconds=240)


async def test_a_second_agent_ends(node: Node) -> None:
    async with daemon_of(node), node.agent():
        await until(lambda: "agent.started" in node.log())
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nri_resmgr", "agent", "--node-name", node.name),
            *("--kubeconfig", str(node.folder / "agent.yaml")),
            *("--spool", str(node.folder / "spool")),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, complaint = await second.communicate()

    assert second.returncode == 1
    assert b"another agent uses it" in complaint


async def test_the_spool_outlives_the_agent(node: Node) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node), node.agent():
        await until(lambda: node.reserved() == "3")
    assert (node.folder / "spool" / CONFIGURATION).exists()
    async with daemon_of(node):
        assert node.reserved() == "3"
