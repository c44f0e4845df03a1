"""The service serves a runtime from within its sandbox, whatever befalls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.stub.convert import to_message
from nri_resmgr.testing import Runtime
from nri_resmgr.values import CpuSet, QosClass
from tests.deploy.service_manager import ServiceManager, install, service_manager
from tests.host.own_cgroups import own_cgroups
from tests.real_host.mounts import modes_of, modes_of_cgroups
from tests.real_host.patience import wait_until
from tests.waiting import until

UNIT: Final = Path(__file__).parents[2] / "deploy" / "systemd" / "nri-resmgr.service"
DROP_INS: Final = tuple(UNIT.parent.glob(f"{UNIT.name}.d/*.conf"))
WEB: Final = Workload("web", QosClass.BURSTABLE, 500)


@pytest.fixture(params=[False, True], ids=["the unit alone", "all drop-ins"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceManager]:
    units, sockets = tmp_path / "units", tmp_path / "nri"
    units.mkdir()
    sockets.mkdir()
    install(UNIT, units, DROP_INS if request.param else ())
    with service_manager(units, sockets) as found:
        yield found


def reported_cpus(manager: ServiceManager) -> dict[str, str]:
    """Ask the daemon which container has which CPUs."""
    asked = manager.within("/opt/nri-resmgr/bin/nri-resmgr", "status", "-o", "json")
    assert (asked.returncode, asked.stderr) == (0, "")
    return {one["name"]: one["cpus"] for one in json.loads(asked.stdout)["containers"]}


def files_left(manager: ServiceManager) -> set[str]:
    folders = ("/run/nri-resmgr", "/var/lib/nri-resmgr")
    return set(manager.within("find", *folders, "-type", "f").stdout.split())


def kill(manager: ServiceManager) -> None:
    """Kill the daemon, and wait for the next one to be in sync."""
    manager.systemctl("kill", "--signal=KILL", UNIT.name)
    wait_until(
        lambda: (
            (
                manager.show(UNIT.name, "NRestarts"),
                manager.show(UNIT.name, "ActiveState"),
            )
            == ("1", "active")
        ),
        "the service to be started anew",
        60,
    )


@pytest.mark.process
async def test_a_service_places_containers_and_comes_back(
    manager: ServiceManager, tmp_path: Path
) -> None:
    async with Runtime(tmp_path / "nri") as runtime:
        started = await asyncio.to_thread(manager.systemctl, "start", UNIT.name)
        assert (started.returncode, started.stderr) == (0, "")
        # A start ends when all is in sync, so the next pod is placed.
        pod = await runtime.run_pod(WEB.pod)
        made = (await runtime.create_container(pod.id, WEB.container)).container
        first = await asyncio.to_thread(reported_cpus, manager)
        await asyncio.to_thread(kill, manager)
        again = await asyncio.to_thread(reported_cpus, manager)
        stopped = await asyncio.to_thread(manager.systemctl, "stop", UNIT.name)

    assert first == again == {"web": to_message(made).linux.resources.cpu.cpus}
    assert (stopped.returncode, manager.show(UNIT.name, "Result")) == (0, "success")
    # The container still reads its files, and the next start has its state.
    assert files_left(manager) == {
        f"/run/nri-resmgr/containers/{made.id}/resources.json",
        f"/run/nri-resmgr/containers/{made.id}/resources.sh",
        "/var/lib/nri-resmgr/lock",
        "/var/lib/nri-resmgr/policy.checkpoint",
    }


@pytest.mark.process
@pytest.mark.parametrize("drop_ins", [(), DROP_INS], ids=["the unit alone", "all"])
async def test_the_service_may_write_cgroups_and_sys_is_read_only(
    tmp_path: Path, drop_ins: tuple[Path, ...]
) -> None:
    units, sockets = tmp_path / "units", tmp_path / "nri"
    units.mkdir()
    sockets.mkdir()
    install(UNIT, units, drop_ins)
    with (
        own_cgroups() as cgroups,
        service_manager(units, sockets) as manager,
    ):
        path = cgroups.make("web")
        cgroups.start("web")
        everything = cgroups.read("web", "cpuset.cpus")
        async with Runtime(sockets) as runtime:
            pod = await runtime.run_pod(WEB.pod)
            web = WEB.container
            assert web.linux is not None
            linux = msgspec.structs.replace(web.linux, cgroups_path=path)
            web = msgspec.structs.replace(web, linux=linux)
            await runtime.create_container(pod.id, web)
            # It ran before the service, so a session begins with its comparison.
            started = await asyncio.to_thread(manager.systemctl, "start", UNIT.name)
            assert (started.returncode, started.stderr) == (0, "")
            wanted = (await asyncio.to_thread(reported_cpus, manager))["web"]
            other = min(CpuSet.parse(everything) - CpuSet.parse(wanted), default=0)
            cgroups.write("web", "cpuset.cpus", str(other))
            await asyncio.to_thread(kill, manager)
            await until(lambda: cgroups.read("web", "cpuset.cpus") == wanted)
            process = manager.show(UNIT.name, "MainPID")
            mounts = await asyncio.to_thread(
                manager.within, "nsenter", "-m", "-t", process, "cat", "/proc/mounts"
            )
            await asyncio.to_thread(manager.systemctl, "stop", UNIT.name)

    modes = modes_of(mounts.stdout)
    assert modes["/sys"] == "ro"
    assert modes.get("/sys/devices/system/cpu") == ("rw" if drop_ins else None)
    assert modes_of_cgroups(mounts.stdout) == {"rw"}
