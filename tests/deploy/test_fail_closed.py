"""A kubelet that is bound to the service runs only while the daemon is in sync."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import kubernetes_validate
import pytest
import yaml

from nri_resmgr.daemon.defaults import DEFAULT_NAME
from nri_resmgr.runtimes.switch import TOLERATED
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import DefaultValidator, Runtime, RuntimeOptions
from tests.deploy.kubectl import MANIFESTS, of_kind, rendered
from tests.deploy.service_manager import ServiceManager, install, service_manager
from tests.deploy.test_sandbox import UNIT
from tests.real_host.patience import wait_until

pytestmark = pytest.mark.process

PAGE: Final = Path(__file__).parents[2] / "docs" / "fail-closed.md"

FAIL_CLOSED: Final = UNIT.parent / "fail-closed"
KUBELET: Final = "kubelet.service"

# It outlives the daemon but for its drop-in, as the kubelet does.
_KUBELET: Final = "[Service]\nExecStart=sleep 600\nRestart=always\n"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    units, sockets = tmp_path / "units", tmp_path / "nri"
    units.mkdir()
    sockets.mkdir()
    install(UNIT, units, [FAIL_CLOSED / "nri-resmgr.conf"])
    (units / KUBELET).write_text(_KUBELET)
    (units / f"{KUBELET}.d").mkdir()
    shutil.copy(FAIL_CLOSED / "kubelet.conf", units / f"{KUBELET}.d")
    with service_manager(units, sockets) as found:
        yield found


def state_of(manager: ServiceManager, unit: str) -> str:
    return manager.show(unit, "ActiveState")


def wait_for_kubelet(manager: ServiceManager, state: str) -> None:
    wait_until(lambda: state_of(manager, KUBELET) == state, f"kubelet {state}", 60)


async def test_the_kubelet_runs_while_the_daemon_is_in_sync(
    manager: ServiceManager, tmp_path: Path
) -> None:
    # At boot, without a runtime so far.
    await asyncio.to_thread(manager.systemctl, "start", "--no-block", KUBELET)
    await asyncio.to_thread(
        wait_until,
        lambda: int(manager.show(UNIT.name, "NRestarts") or 0) > 0,
        "a daemon without a runtime",
        60,
    )
    assert state_of(manager, KUBELET) == "inactive"
    async with Runtime(tmp_path / "nri") as runtime:
        await asyncio.to_thread(wait_for_kubelet, manager, "active")
        assert runtime.plugins
        assert state_of(manager, UNIT.name) == "active"

        first = manager.show(KUBELET, "MainPID")
        await asyncio.to_thread(manager.systemctl, "kill", "--signal=KILL", UNIT.name)
        await asyncio.to_thread(
            wait_until,
            lambda: manager.show(KUBELET, "MainPID") not in (first, "0"),
            "another kubelet",
            60,
        )
        assert state_of(manager, UNIT.name) == "active"

        await asyncio.to_thread(manager.systemctl, "stop", UNIT.name)
        await asyncio.to_thread(wait_for_kubelet, manager, "inactive")
        await asyncio.to_thread(manager.systemctl, "start", UNIT.name)
        await asyncio.to_thread(wait_for_kubelet, manager, "active")


async def test_no_kubelet_is_there_between_a_kill_and_the_next_start(
    manager: ServiceManager, tmp_path: Path
) -> None:
    async with Runtime(tmp_path / "nri"):
        await asyncio.to_thread(manager.systemctl, "start", UNIT.name)
        await asyncio.to_thread(wait_for_kubelet, manager, "active")
        # For longer than the service waits before it starts again.
        program = "/opt/nri-resmgr/bin/nri-resmgr"
        manager.within("mv", program, f"{program}.away")
        await asyncio.to_thread(manager.systemctl, "kill", "--signal=KILL", UNIT.name)
        await asyncio.to_thread(wait_for_kubelet, manager, "inactive")
        manager.within("mv", f"{program}.away", program)
        await asyncio.to_thread(wait_for_kubelet, manager, "active")


async def test_the_daemons_own_pod_starts_without_the_daemon(tmp_path: Path) -> None:
    daemon_set = of_kind(rendered(MANIFESTS / "base"), "DaemonSet")
    annotations = daemon_set["spec"]["template"]["metadata"]["annotations"]
    validator = DefaultValidator(
        required_plugins=(DEFAULT_NAME,), tolerate_annotation=TOLERATED
    )
    async with Runtime(
        tmp_path, options=RuntimeOptions(validator=validator)
    ) as runtime:
        pod = await runtime.run_pod(Pod(annotations=annotations))
        await runtime.create_container(pod.id, Container(name="nri-resmgr"))

        assert len(runtime.containers) == 1


def test_the_page_has_an_admission_policy_that_the_api_takes() -> None:
    text = PAGE.read_text()
    (block,) = (
        one.partition("```")[0]
        for one in text.split("```yaml\n")
        if one.startswith("apiVersion: admission")
    )
    for one in yaml.safe_load_all(block):
        kubernetes_validate.validate(one, "1.37", strict=True)

    assert f"startsWith('{TOLERATED}')" in block
    assert f'tolerate_missing_plugins_annotation = "{TOLERATED}"' in text
    assert f'required_plugins = ["{DEFAULT_NAME}"]' in text
