"""Both units beside each other: neither start waits for the other, and they meet."""

from __future__ import annotations

import asyncio
import json
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.testing import Runtime
from tests.agent.authority import Authority
from tests.agent.fake_api_server import FakeApiServer
from tests.deploy.service_manager import ServiceManager, install, service_manager
from tests.deploy.unit_files import AGENT_UNIT, PROGRAM, UNIT
from tests.real_host.patience import wait_until

pytestmark = pytest.mark.process

NODE: Final = "worker-1"
NAMESPACE: Final = "kube-system"
STATIC: Final = f"/apis/config.nri/v1alpha1/namespaces/{NAMESPACE}/staticpolicies"

_AS_HERE: Final = """\
[Service]
User={user}
Environment=NRI_RESMGR_KUBECONFIG=/opt/nri-resmgr/kubeconfig
Environment=NRI_RESMGR_NODE_NAME={node}
"""


def some_user() -> str:
    """Return a user that there is, instead of the one that systemd-sysusers makes.

    Python may be below root's home, where no other user can run it.
    """
    try:
        subprocess.run(
            [sys.executable, "-c", "import httpx2"], user="nobody", check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "root"
    return "nobody"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    units, sockets = tmp_path / "units", tmp_path / "nri"
    units.mkdir()
    sockets.mkdir()
    install(UNIT, units, (UNIT.parent / f"{UNIT.name}.d" / "cluster.conf",))
    install(AGENT_UNIT, units, ())
    here = _AS_HERE.format(user=some_user(), node=NODE)
    (units / f"{AGENT_UNIT.name}.d" / "here.conf").write_text(here)
    with service_manager(units, sockets) as found:
        yield found


def give_kubeconfig(manager: ServiceManager, server: str, ca: Path) -> None:
    """Put a kubeconfig where the unit's user can read it."""
    text = yaml.safe_dump(
        {
            "clusters": [
                {
                    "name": "test",
                    "cluster": {
                        "server": server,
                        "certificate-authority": "/opt/nri-resmgr/ca.crt",
                    },
                }
            ],
            "users": [{"name": "test", "user": {"token": "any"}}],
            "contexts": [
                {"name": "test", "context": {"cluster": "test", "user": "test"}}
            ],
            "current-context": "test",
        }
    )
    folder = Path("/proc", str(manager.process.pid), "root/opt/nri-resmgr")
    (folder / "ca.crt").write_bytes(ca.read_bytes())
    (folder / "kubeconfig").write_text(text)


def status_of(manager: ServiceManager) -> dict[str, Any]:
    done = manager.within(PROGRAM, "status", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)["cluster"]
    return found


def user_of(manager: ServiceManager) -> int:
    """Return the user of the agent's process."""
    process = manager.show(AGENT_UNIT.name, "MainPID")
    return Path("/proc", process).stat().st_uid


async def test_neither_waits_for_the_other_and_a_document_comes_into_force(
    manager: ServiceManager, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    document = {
        "metadata": {"name": "default"},
        "spec": {"reservedResources": {"cpu": "1"}},
    }
    async with FakeApiServer(authority.server()) as server:
        server.kinds |= {"config.nri/staticpolicies", "config.nri/noderesourcemanagers"}
        server.put("/api/v1/nodes", {"metadata": {"name": NODE}})
        server.put(STATIC, document)
        give_kubeconfig(manager, server.url, authority.ca)
        # Without a daemon, and without a runtime.
        first = await asyncio.to_thread(manager.systemctl, "start", AGENT_UNIT.name)
        status = manager.show(AGENT_UNIT.name, "StatusText")
        user = user_of(manager)
        async with Runtime(tmp_path / "nri"):
            then = await asyncio.to_thread(manager.systemctl, "start", UNIT.name)
            await asyncio.to_thread(
                wait_until,
                lambda: status_of(manager)["configuration"] is not None,
                "a verdict",
                60,
            )
            found = await asyncio.to_thread(status_of, manager)
            await asyncio.to_thread(
                wait_until,
                lambda: status_of(manager)["agent"] is not None,
                "the agent's report",
                60,
            )
            stopped = [
                await asyncio.to_thread(manager.systemctl, "stop", unit.name)
                for unit in (AGENT_UNIT, UNIT)
            ]

    assert (first.returncode, first.stderr) == (0, "")
    assert (then.returncode, then.stderr) == (0, "")
    assert status == f"connects node {NODE} with its cluster"
    assert user == pwd.getpwnam(some_user()).pw_uid
    assert found["configuration"]["verdict"] == "accepted"
    assert found["configuration"]["object"]["name"] == "default"
    assert [one.returncode for one in stopped] == [0, 0]
    assert manager.show(AGENT_UNIT.name, "Result") == "success"
