"""What is shown of overheads and of virtual machines."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nri_resmgr.app.running.sandboxes import SandboxStatus
from nri_resmgr.app.running.vm_pods import VmPod
from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.stub.model import LinuxPod
from nri_resmgr.values import CpuSet, NodeSet
from tests.app.node import asking_for, config
from tests.control.daemon_parts import ask, asking, make_parts
from tests.control.json_schema import mistakes

WHY = "no cgroup of the sandbox is found: /kubepods/podb/b"


def sandbox(name: str, pin: Pin, in_force: Pin | None, why: str = "") -> SandboxStatus:
    pod = VmPod(
        f"id-{name}", f"shop/{name}", "kata-qemu", f"/kubepods/pod{name}/{name}"
    )
    return SandboxStatus(pod, pin, in_force, why)


def rows(text: str, start: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith(start)]


async def test_the_overhead_of_a_pod_is_shown(tmp_path: Path) -> None:
    parts = make_parts("1s1n4c1t", config("{}"))
    linux = LinuxPod(pod_overhead=asking_for(0.25))
    parts.policy.run_pod_sandbox(msgspec.structs.replace(parts.pod("vm"), linux=linux))
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")
        explained = await ask(client, "/v1/explain", pod="vm")

    assert mistakes(state, "State") == mistakes(explained, "Explanation") == []
    (found,) = state["reservations"]
    assert (found["name"], found["source"]) == ("(overhead)", "pod overhead")
    assert found["request"] == {"cpu": 250, "memory": 1 << 30}
    (row,) = rows(render_status(state), "shop/vm/(overhead)")
    assert row[-2:] == ["pod", "overhead"]
    assert render_explanation(explained).splitlines()[:3] == [
        "shop/vm (overhead)",
        "  reserved a part of the shared CPUs; memory of nodes 0",
        "  asks     250m CPU, 1 GiB memory",
    ]


async def test_sandboxes_are_shown(tmp_path: Path) -> None:
    parts = make_parts("1s1n4c1t", config("{}"))
    pin = Pin(CpuSet.parse("1-2"), NodeSet.of(0))
    found = (
        sandbox("a", pin, pin),
        sandbox("b", pin, None, WHY),
        sandbox("c", NO_PIN, None),
        sandbox("d", pin, None),
    )
    parts.daemon.sandboxes = lambda: found
    async with asking(parts, tmp_path) as client:
        state = await ask(client, "/v1/state")

    assert mistakes(state, "State") == []
    assert [one["decided"] for one in state["sandboxes"]] == [
        {"cpus": "1-2", "mems": "0"},
        {"cpus": "1-2", "mems": "0"},
        {"cpus": "", "mems": ""},
        {"cpus": "1-2", "mems": "0"},
    ]
    assert state["sandboxes"][1]["why"] == WHY
    assert rows(render_status(state), "shop/") == [
        ["shop/a", "kata-qemu", "1-2", "0", "yes"],
        ["shop/b", "kata-qemu", "1-2", "0", *f"no: {WHY}".split()],
        ["shop/c", "kata-qemu", "any", "any", "-"],
        ["shop/d", "kata-qemu", "1-2", "0", "pending"],
    ]
