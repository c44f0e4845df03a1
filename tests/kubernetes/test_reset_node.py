"""What a node had in force is discarded by hand, and the cluster configures it anew."""

from __future__ import annotations

import json
import shutil
from typing import Final

import pytest

from tests.cli.command import nri_resmgr
from tests.kubernetes.nodes import Node, daemon_of, policy, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

STAY: Final = "--disable-policy-switch"


async def test_another_policy_of_the_cluster_follows_one_that_was_reset(
    node: Node,
) -> None:
    state = ("--state-dir", str(node.folder / "state"))
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, *state), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        assert node.state()["policy"] == "StaticPolicy"
    node.kubectl("delete", "staticpolicy", "default")
    node.kubectl.apply(policy("default", "cpuset:2", "BalloonsPolicy"))
    async with daemon_of(node, *state, STAY), node.agent():
        await until(lambda: node.condition()[1] == "Rejected")

        assert STAY in node.condition()[2]
        assert (node.state()["policy"], node.reserved()) == ("StaticPolicy", "3")
    done = nri_resmgr("run", "--reset-policy", *state)
    assert (done.returncode, "state.discarded" in done.stderr) == (0, True)
    async with daemon_of(node, *state, STAY), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")

        assert (node.state()["policy"], node.reserved()) == ("BalloonsPolicy", "2")


async def test_another_document_of_the_cluster_follows_one_that_was_reset(
    node: Node,
) -> None:
    fallback = node.folder / "fallback.yaml"
    fallback.write_text(json.dumps(policy("mine", "cpuset:1")))
    state = ("--state-dir", str(node.folder / "state"))
    flags = (*state, "--fallback-config", str(fallback))
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, *flags), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
        assert node.reserved() == "3"
    shutil.rmtree(node.folder / "spool")
    (node.folder / "spool").mkdir(0o755)
    done = nri_resmgr("run", "--reset-config", *state)
    assert (done.returncode, "state.discarded" in done.stderr) == (0, True)
    async with daemon_of(node, *flags):
        assert node.reserved() == "1"
        node.kubectl.apply(policy("default", "cpuset:2"))
        async with node.agent():
            await until(lambda: node.reserved() == "2")
            await until(lambda: node.condition()[1] == "Accepted")

    assert node.source() == "default"
