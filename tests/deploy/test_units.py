"""A real systemd takes what the daemon sets in a unit, and keeps it in a reload."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from nri_resmgr.host.systemd_bus import SystemdBus
from nri_resmgr.host.systemd_units import NoSuchUnit, UnitValues
from nri_resmgr.values import CpuSet, NodeSet
from tests.deploy.service_manager import ServiceManager, service_manager_with_bus
from tests.real_host.patience import patience, wait_until

pytestmark = pytest.mark.process

_UNIT: Final = "cri-one.scope"


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceManager]:
    units, sockets = (tmp_path_factory.mktemp(name) for name in ("units", "nri"))
    with service_manager_with_bus(units, sockets) as started:
        yield started


@pytest.fixture
def scope(manager: ServiceManager) -> Iterator[None]:
    """Run a process in a scope, as a runtime does."""
    run = ("systemd-run", "--user", "--scope", f"--unit={_UNIT}", "sleep", "600")
    process = subprocess.Popen(
        ["nsenter", "--mount", f"--target={manager.process.pid}", *run],
        env=manager.environment,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: manager.show(_UNIT, "ActiveState") == "active", "a scope")
    yield
    process.terminate()
    process.wait(patience(30))


@pytest.mark.usefixtures("scope")
async def test_a_reload_keeps_the_values_of_units(manager: ServiceManager) -> None:
    bus = await SystemdBus.connect(manager.bus)
    await bus.set_unit(_UNIT, UnitValues(CpuSet.parse("0-3"), NodeSet.of(0)))
    await bus.set_unit(_UNIT, UnitValues(CpuSet.parse("1-2,9,70"), NodeSet.of(0)))
    bus.close()
    manager.systemctl("daemon-reload")

    assert manager.show(_UNIT, "AllowedCPUs") == "1-2 9 70"
    assert manager.show(_UNIT, "AllowedMemoryNodes") == "0"


async def test_a_missing_unit_has_an_error_of_its_own(manager: ServiceManager) -> None:
    bus = await SystemdBus.connect(manager.bus)
    with pytest.raises(NoSuchUnit):
        await bus.set_unit("cri-none.scope", UnitValues(CpuSet.of(0), NodeSet.of(0)))
    bus.close()
