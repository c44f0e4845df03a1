"""The cluster is away, refuses, or sends too much: the node goes on with what it knows.

`kubectl`, a real API server, a real daemon and its agent. In each case a new pod is
placed meanwhile, the agent says what is wrong once, and `nri-resmgr status` shows how
old its knowledge is.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from typing import Final

import pytest

from nri_resmgr.spool import CONFIGURATION
from tests.daemon.daemon_process import RunningDaemon
from tests.kubernetes.certificates import Certificates
from tests.kubernetes.conftest import install_kinds
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.front import front_of
from tests.kubernetes.nodes import (
    API,
    Node,
    daemon_of,
    place,
    policy,
    status_of,
    until,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

# The age of what is known.
CONTACT: Final = re.compile(r"API server last answered (never|\S+.* ago)")


def failures(node: Node) -> Counter[str]:
    """Return how often the agent has reported that each object cannot be watched."""
    lines = [one for one in node.log().splitlines() if "agent.watch-failing" in one]
    return Counter(re.sub(r"^\S+ \S+ ", "", one) for one in lines)


async def goes_on(node: Node, running: RunningDaemon, problem: str) -> None:
    """Check that a pod is placed, and what the log and `status` have."""
    assert await place(running, "later")
    assert node.reserved() == "3"
    status = status_of(node)
    assert problem in status
    assert CONTACT.search(status)
    assert set(failures(node).values()) == {1}, failures(node)


def problem_of(node: Node) -> str:
    """Return what the agent has reported to the daemon."""
    agent = node.state()["cluster"]["agent"]
    return str(agent and agent["problem"])


def never_answered(node: Node) -> bool:
    """Return whether the API server has never answered the agent that reported last."""
    agent = node.state()["cluster"]["agent"]
    return agent is not None and agent["contactSeconds"] is None


async def test_an_expired_token_is_named_until_it_is_rotated(
    node: Node, control_plane: ControlPlane
) -> None:
    now, account = time.time(), node.account
    # What is not expired is accepted, so it is not refused for another reason.
    answers = [
        control_plane.ask("GET", "/api/v1/nodes", token=account.token_until(moment))
        for moment in (now + 3600, now - 3600)
    ]
    assert [one.status for one in answers] == [200, 401]
    secrets = node.folder / "secrets"
    kubeconfig = account.mounted_kubeconfig(secrets)
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node) as running:
        async with node.agent(kubeconfig=kubeconfig):
            await until(lambda: node.reserved() == "3")
        # The node was away for long: a kubelet could not renew its tokens.
        (secrets / "token").write_text(account.token_until(now - 3600))
        node.kubectl.apply(policy("default", "cpuset:1"))
        async with node.agent(kubeconfig=kubeconfig):
            await until(lambda: "(401): it has expired" in problem_of(node))
            await goes_on(node, running, f"the token of {secrets / 'token'}")
            (secrets / "token").write_text(account.token())
            # Its pauses have grown with the time that the steps above took.
            await until(lambda: node.reserved() == "1", seconds=240)


async def test_a_replaced_authority_is_read_and_a_wrong_one_named(
    node: Node, control_plane: ControlPlane
) -> None:
    other = Certificates(node.folder / "other")
    other.create()
    secrets = node.folder / "secrets"
    async with front_of(control_plane) as front, daemon_of(node) as running:
        kubeconfig = node.account.mounted_kubeconfig(secrets, front.url)
        node.kubectl.apply(policy("default", "cpuset:2"))
        async with node.agent(kubeconfig=kubeconfig):
            await until(lambda: node.reserved() == "2")
            (secrets / "ca.crt").write_text(other.authority.read_text())
            await front.cut()
            await front.listen(other)
            node.kubectl.apply(policy("default", "cpuset:3"))
            await until(lambda: node.reserved() == "3")
        # Now it trusts the new authority, and the server shows the old one's.
        before = failures(node)
        await front.cut()
        await front.listen()
        async with node.agent(kubeconfig=kubeconfig):
            # Not by the last report of the agent before, which had an answer.
            await until(
                lambda: never_answered(node) and "check the CA" in problem_of(node)
            )
            assert await place(running, "later")
            assert node.reserved() == "3"
            status = status_of(node)
            assert "check the CA" in status
            assert "API server last answered never" in status
            new = failures(node) - before
            assert set(new.values()) == {1}, new


async def test_revoked_rights_are_named_and_nothing_else_changes(
    node: Node, control_plane: ControlPlane
) -> None:
    node.kubectl.apply(policy("default", "cpuset:3"))
    path = f"/apis/{API}/namespaces/{node.kubectl.namespace}/staticpolicies"
    async with front_of(control_plane) as front, daemon_of(node) as running:
        kubeconfig = node.account.mounted_kubeconfig(node.folder / "secrets", front.url)
        async with node.agent(kubeconfig=kubeconfig):
            await until(lambda: node.condition()[1] == "Accepted")
            node.account.allow()
            token = node.account.token()
            await until(
                lambda: control_plane.ask("GET", path, token=token).status == 403
            )
            # A watch that is open stays open.
            await front.cut()
            await front.listen()
            await until(lambda: "not permitted (403)" in problem_of(node))
            await until(lambda: "staticpolicies" in str(node.missing_rights()))
            await goes_on(node, running, "not permitted (403)")


async def test_a_deleted_definition_leaves_its_last_document_in_force(
    node: Node, control_plane: ControlPlane
) -> None:
    # A kind that no other test here has.
    kind, definition = "StaticPlusPolicy", "staticpluspolicies.config.nri"
    node.kubectl.apply(policy("default", "cpuset:3", kind))
    async with daemon_of(node) as running, node.agent("--kinds", kind):
        await until(lambda: node.condition()[1] == "Accepted")
        try:
            node.kubectl("delete", "crd", definition)
            await until(lambda: node.condition()[1] == "ConfigurationGone")
            assert await place(running, "later")
            assert node.reserved() == "3"
            assert node.condition("Ready")[0] == "True"
            assert CONTACT.search(status_of(node))
        finally:
            install_kinds(control_plane)


async def test_an_object_of_a_megabyte_counts_as_any_other(node: Node) -> None:
    kind = "BalloonsPolicy"
    many = [f"namespace-of-some-team-{number:06d}" for number in range(30_000)]
    large = policy("default", "cpuset:3", kind, reservedPoolNamespaces=many)
    assert len(json.dumps(large)) > 900_000
    async with daemon_of(node) as running, node.agent("--kinds", kind):
        # Not client-side, which would keep a copy of it in an annotation.
        node.kubectl.apply(large, server_side=True)
        await until(lambda: node.condition()[1] == "Accepted", seconds=240)
        assert await place(running, "later")
        assert node.reserved() == "3"
        assert failures(node) == {}


async def test_a_storm_of_changes_is_one_document_a_second(
    node: Node, control_plane: ControlPlane
) -> None:
    path = f"/apis/{API}/namespaces/{node.kubectl.namespace}/staticpolicies/default"
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node) as running, node.agent():
        await until(lambda: node.reserved() == "3")
        before, began = handed_over(node), time.monotonic()
        changes = asyncio.create_task(
            asyncio.to_thread(_storm, control_plane, path, 300)
        )
        placed = [await place(running, "during-0")]
        await changes
        placed.append(await place(running, "during-1"))
        node.kubectl.apply(policy("default", "cpuset:1"))
        await until(lambda: node.reserved() == "1")
        seconds = time.monotonic() - began

    assert all(placed)
    # The agent pauses for a second after each.
    assert handed_over(node) - before <= seconds + 2
    assert failures(node) == {}


def _storm(control_plane: ControlPlane, path: str, count: int) -> None:
    for number in range(count):
        patch = {"spec": {"reservedResources": {"cpu": f"cpuset:{2 + number % 2}"}}}
        kind = "application/merge-patch+json"
        assert control_plane.ask("PATCH", path, patch, kind=kind).status == 200


def handed_over(node: Node) -> int:
    """Return how many documents the agent has written for the daemon."""
    return node.log().count("agent.handed-over")


async def test_a_switch_that_is_forbidden_is_rejected_at_the_start_as_well(
    node: Node,
) -> None:
    state = ("--state-dir", str(node.folder / "state"))
    node.kubectl.apply(policy("default", "cpuset:3"))
    async with daemon_of(node, *state), node.agent():
        await until(lambda: node.condition()[1] == "Accepted")
    # While no daemon runs, the cluster gets a document of another kind.
    node.kubectl("delete", "staticpolicy", "default")
    node.kubectl.apply(policy("default", "cpuset:1", "BalloonsPolicy"))
    spooled = node.folder / "spool" / CONFIGURATION
    async with node.agent():
        await until(lambda: "BalloonsPolicy" in spooled.read_text())
        async with daemon_of(node, *state, "--disable-policy-switch") as running:
            await until(lambda: node.condition()[1] == "Rejected")
            words = "BalloonsPolicy cannot follow StaticPolicy: --disable-policy-switch"
            assert words in node.condition()[2]
            assert (node.reserved(), node.state()["policy"]) == ("3", "StaticPolicy")
            assert await place(running, "later")
        # Without the flag it is a change as any other.
        async with daemon_of(node, *state):
            await until(lambda: node.condition()[1] == "Accepted")
            assert (node.reserved(), node.state()["policy"]) == ("1", "BalloonsPolicy")
