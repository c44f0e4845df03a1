"""The daemon sets the units of containers, on the bus of its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.running.units import ADDRESS_VARIABLE
from tests.daemon.daemon_process import daemon
from tests.daemon.test_verification import MACHINE, OFTEN, PATH, run_web, write
from tests.running.systemd_double import SOCKET, bus_below, systemd_on
from tests.verification.cgroup_trees import MOUNT
from tests.waiting import until

pytestmark = pytest.mark.process


async def test_values_written_to_a_cgroup_are_set_in_its_unit(tmp_path: Path) -> None:
    with bus_below(tmp_path / "bus") as bus:
        async with (
            systemd_on(bus) as systemd,
            daemon(
                tmp_path,
                MACHINE,
                *OFTEN,
                before=lambda root: write(root, "0-7"),
                environment={ADDRESS_VARIABLE: bus.address},
            ) as running,
        ):
            await run_web(running)
            await until(lambda: len(systemd.calls) >= 1)

    values = {"AllowedCPUs": "4-5", "AllowedMemoryNodes": "1"}
    assert systemd.calls[0] == ("cri-containerd-web.scope", True, values)


async def test_without_a_bus_cgroups_are_written(tmp_path: Path) -> None:
    host = tmp_path / "host"
    file = host / MOUNT / PATH / "cpuset.cpus"
    async with daemon(
        tmp_path, MACHINE, *OFTEN, before=lambda root: write(root, "0-7")
    ) as running:
        await run_web(running)
        await until(lambda: file.read_text() == "4-5\n")
        line = await running.line("units.not-set")

    assert line["why"] == (
        f"systemd cannot be reached by {host}/{SOCKET}: No such file or directory"
    )
