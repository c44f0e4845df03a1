"""What the daemon knows after it was killed, or stopped, and started again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginEnded
from nri_resmgr.values import QosClass
from tests.daemon.restarts import Node, node

pytestmark = pytest.mark.process

WEB = Workload("web", QosClass.GUARANTEED, 2000)
DB = Workload("db", QosClass.GUARANTEED, 1000)
LOG = Workload("log", QosClass.BURSTABLE, 500)
OTHER = Workload("other", QosClass.GUARANTEED, 1000)


async def place_all(some: Node) -> dict[str, str]:
    for workload in (LOG, WEB, DB):
        await some.come(workload)
    return some.cpus()


async def test_after_a_kill_all_placements_are_restored(tmp_path: Path) -> None:
    async with node(tmp_path) as some:
        async with some.daemon() as process:
            before = await place_all(some)
            await some.written()
            process.kill()
        async with some.daemon():
            after = some.cpus()
            restored = await some.says("state.restored")
            synchronized = await some.says("node.synchronized")

    assert after == before
    assert restored["containers"] == 3
    assert (synchronized["rules"], synchronized["updates"]) == ({"kept": 3}, 0)


async def test_a_container_comes_back_to_the_place_before_the_kill(
    tmp_path: Path,
) -> None:
    async with node(tmp_path) as some:
        async with some.daemon() as process:
            first = await some.come(OTHER)
            second = await some.come(DB)
            place = some.cpus()[second]
            await some.go(first)
            await some.go(second)
            await some.come(LOG)
            await some.written()
            process.kill()
        async with some.daemon():
            again = await some.come(DB, 1)
            back = some.cpus()[again]

    # Without memory it would get 4, which the first one had.
    assert (place, back) == ("1", "1")


async def test_an_orderly_end_writes_pending_changes(tmp_path: Path) -> None:
    async with node(tmp_path) as some, some.daemon():
        before = await place_all(some)  # within the interval between writes

    assert some.kept() == before.keys()


Spoil = Callable[[Path], object]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(
            lambda path: path.write_bytes(path.read_bytes()[:-20]),
            "the checkpoint is unreadable: it was cut off or changed",
            id="cut",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"\x00\xff" * 100),
            "the checkpoint is unreadable: line 1 is not JSON",
            id="garbage",
        ),
        pytest.param(
            lambda path: path.write_text(
                path.read_text()
                .replace('"format":1', '"format":2')
                .replace('"version":"', '"version":"99')
            ),
            "the checkpoint is of version 99",
            id="of a newer version",
        ),
    ],
)
async def test_an_invalid_checkpoint_is_set_aside(
    tmp_path: Path, spoil: Spoil, why: str
) -> None:
    async with node(tmp_path) as some:
        async with some.daemon():
            before = await place_all(some)
        spoil(some.checkpoint)
        content = some.checkpoint.read_bytes()
        async with some.daemon():
            after = some.cpus()
            logged = await some.says("state.set-aside")

    aside = tmp_path / "state" / f"{CHECKPOINT_NAME}.bad-1"
    assert logged["why"].startswith(why)
    assert (logged["moved_to"], aside.read_bytes()) == (str(aside), content)
    assert after == before


async def test_two_at_once_are_refused(tmp_path: Path) -> None:
    async with node(tmp_path) as some, some.daemon() as process:
        found = [await some.command(), await some.command("--reset-policy")]
        sentence = (
            f"nri-resmgr: {tmp_path}/state is in use by process {process.pid}; "
            "stop it, or use another --state-dir\n"
        )

    assert found == [(1, sentence)] * 2


async def test_a_dry_run_writes_no_state(tmp_path: Path) -> None:
    async with node(tmp_path) as some, some.daemon("--dry-run"):
        await some.come(LOG)

    assert not some.checkpoint.exists()


async def test_a_policy_is_reset(tmp_path: Path) -> None:
    async with node(tmp_path) as some:
        async with some.daemon():
            await place_all(some)
        before = some.checkpoint.exists()
        status, _ = await some.command("--reset-policy")

    assert (before, status, some.checkpoint.exists()) == (True, 0, False)


async def test_another_policy_starts_from_the_pins_of_running_containers(
    tmp_path: Path,
) -> None:
    static = tmp_path / "static.yaml"
    static.write_text(
        "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n"
        "spec: {reservedResources: {cpu: 'cpuset:0'}}\n"
    )
    async with node(tmp_path) as some:
        async with some.daemon():
            before = await place_all(some)
        with pytest.raises(PluginEnded) as ended:
            async with some.daemon("--config-file", str(static), *STAY):
                pass
        async with some.daemon("--config-file", str(static)):
            after = some.cpus()
            logged = await some.says("state.of-other-policy")

    own, kinds = ("ctr-web-0", "ctr-db-0"), ("TopologyAwarePolicy", "StaticPolicy")
    assert ended.value.exit_status == 2
    assert "StaticPolicy cannot follow TopologyAwarePolicy" in str(ended.value)
    assert (logged["saved_kind"], logged["kind"]) == kinds
    assert [after[key] for key in own] == [before[key] for key in own]


STAY = ("--disable-policy-switch", "--log-to", "stderr")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_state_of_another_ends_the_start(tmp_path: Path) -> None:
    async with node(tmp_path) as some:
        async with some.daemon():
            await some.come(LOG)
        os.chown(some.checkpoint, 65534, -1)
        with pytest.raises(PluginEnded, match="belongs to user 65534, not to 0"):
            async with some.daemon():
                pass


async def test_without_a_usable_state_directory_containers_are_served(
    tmp_path: Path,
) -> None:
    async with (
        node(tmp_path) as some,
        some.daemon("--state-dir", "/proc/no/state"),
    ):
        await place_all(some)
        logged = await some.says("state.not-kept")

    assert logged["why"] == "/proc/no/state: no such file or directory"


async def test_a_state_directory_that_becomes_usable_is_used(
    tmp_path: Path,
) -> None:
    blocked = tmp_path / "blocked"
    blocked.symlink_to("/proc/no")
    folder = blocked / "state"
    async with node(tmp_path) as some, some.daemon("--state-dir", str(folder)):
        await place_all(some)
        await some.says("part.failed")
        blocked.unlink()
        async with asyncio.timeout(30):
            while not (folder / CHECKPOINT_NAME).exists():  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
