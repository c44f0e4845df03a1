"""Device plugins over real sockets, against a double of the kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from grpclib.exceptions import GRPCError

from nri_resmgr.kubelet.device_plugin import DevicePlugins
from nri_resmgr.kubelet.offers import Offer, read_devices
from nri_resmgr.testing.kubelet.device_plugins import DevicePluginManager

CPUS: Final = "resource-policy.nri.io/exclusive-cpus"
LISTS: Final = "cmk.intel.com/exclusive-cores"


@pytest.fixture
async def kubelet(folder: Path) -> AsyncIterator[DevicePluginManager]:
    async with DevicePluginManager(folder / "device-plugins") as made:
        yield made


@asynccontextmanager
async def serving(folder: Path, *offers: Offer) -> AsyncIterator[DevicePlugins]:
    plugins = DevicePlugins(folder / "device-plugins")
    plugins.offer(offers)
    task = asyncio.create_task(plugins.run())
    try:
        yield plugins
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_refused(plugins: DevicePlugins, sentence: str) -> None:
    async with asyncio.timeout(60):
        while sentence not in plugins.why:  # noqa: ASYNC110 - no event of the product
            await asyncio.sleep(0.01)


async def test_each_resource_is_registered_with_its_units(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 8, 6), Offer(LISTS, 2, 2)):
        cpus = await kubelet.until(CPUS, allocatable=6, capacity=8)
        await kubelet.until(LISTS, allocatable=2, capacity=2)

        options = await kubelet.options_of(CPUS)

    assert cpus.request.version == "v1beta1"
    assert cpus.request.options == options
    assert options.get_preferred_allocation_available
    assert not options.pre_start_required
    assert sorted(kubelet.registrations) == [LISTS, CPUS]
    # No socket is left to a kubelet that looks for some.
    assert [one.name for one in (folder / "device-plugins").iterdir()] == [
        "kubelet.sock"
    ]


async def test_a_kubelet_that_restarts_gets_the_resources_again(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 4, 4)):
        await kubelet.until(CPUS, allocatable=4)
        before = await kubelet.allocate(CPUS, "web", 2)

        for removes in (True, False, True):
            await kubelet.restart(removes=removes)
            await kubelet.until(CPUS, allocatable=4)
            # As for a container that starts again in its pod.
            assert await kubelet.allocate(CPUS, "web", 2) == before

    assert kubelet.registrations == [CPUS] * 4


async def test_a_removed_socket_is_made_again(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 4, 4)):
        endpoint = await kubelet.until(CPUS, allocatable=4)
        (folder / "device-plugins" / endpoint.request.endpoint).unlink()

        await kubelet.until_stopped(endpoint)
        await kubelet.until(CPUS, allocatable=4)

    assert kubelet.registrations == [CPUS] * 2


async def test_a_kubelet_that_comes_later_is_found(folder: Path) -> None:
    async with serving(folder, Offer(CPUS, 4, 4)) as plugins:
        await until_refused(plugins, "kubelet.sock")
        assert plugins.registered == ()

        async with DevicePluginManager(folder / "device-plugins") as kubelet:
            await kubelet.until(CPUS, allocatable=4)


@pytest.mark.parametrize(
    ("version", "refuses", "sentence"),
    [
        ("v2", "", "requested API version 'v1beta1' is not supported"),
        ("v1beta1", "the name is taken", "the name is taken"),
    ],
)
async def test_a_refusal_is_reported_and_tried_again(
    kubelet: DevicePluginManager,
    folder: Path,
    version: str,
    refuses: str,
    sentence: str,
) -> None:
    kubelet.version, kubelet.refuses = version, refuses

    async with serving(folder, Offer(CPUS, 4, 4)) as plugins:
        await until_refused(plugins, f"{CPUS}: {sentence}")
        assert (plugins.registered, kubelet.endpoints) == ((), {})

        kubelet.version, kubelet.refuses = "v1beta1", ""
        await kubelet.until(CPUS, allocatable=4)
        await until_refused(plugins, "")
        assert plugins.registered == (CPUS,)


async def test_changed_numbers_reach_the_kubelet_without_a_registration(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 4, 4)) as plugins:
        await kubelet.until(CPUS, allocatable=4, capacity=4)
        for capacity, value in ((4, 1), (4, 0), (3, 3), (4, 4)):
            plugins.offer((Offer(CPUS, capacity, value),))
            await kubelet.until(CPUS, allocatable=value, capacity=capacity)

    assert kubelet.registrations == [CPUS]


async def test_units_in_use_stay_healthy_when_there_are_fewer(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 12, 12)) as plugins:
        endpoint = await kubelet.until(CPUS, allocatable=12)
        await kubelet.allocate(CPUS, "web", 3)
        await kubelet.allocate(CPUS, "db", 8)
        plugins.offer((Offer(CPUS, 12, 11),))
        await kubelet.until(CPUS, allocatable=11)

        used = {one for ids in endpoint.in_use.values() for one in ids}
        assert used == endpoint.healthy
        with pytest.raises(ValueError, match="0 available"):
            await kubelet.allocate(CPUS, "more", 1)


async def test_a_resource_that_is_withdrawn_ends_its_stream(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 4, 4), Offer(LISTS, 2, 2)) as plugins:
        gone = await kubelet.until(LISTS, allocatable=2)
        await kubelet.until(CPUS, allocatable=4)

        plugins.offer((Offer(CPUS, 4, 4),))
        await kubelet.until_stopped(gone)

        assert not (folder / "device-plugins" / gone.request.endpoint).exists()
        await kubelet.until(CPUS, allocatable=4)


async def test_an_allocation_is_the_same_twice_and_counts_its_units(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(LISTS, 4, 4, "CMK_NUM_CORES")):
        await kubelet.until(LISTS, allocatable=4)

        first = await kubelet.allocate(LISTS, "dpdk", 2)
        again = await kubelet.allocate(LISTS, "dpdk", 2)
        await kubelet.start_container(LISTS, "unit-0", "unit-1")

    assert first == again
    assert first["CMK_NUM_CORES"] == "2"
    assert read_devices([f"{key}={text}" for key, text in first.items()]) == {LISTS: 2}


async def test_units_that_the_node_does_not_have_are_refused(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 4, 4)):
        await kubelet.until(CPUS, allocatable=4)

        with pytest.raises(GRPCError, match=r"no unit unit-4, but 4 in all"):
            await kubelet.allocate_ids(CPUS, "unit-0", "unit-4")


async def test_required_units_are_preferred_then_the_first_ones(
    kubelet: DevicePluginManager, folder: Path
) -> None:
    async with serving(folder, Offer(CPUS, 12, 12)):
        await kubelet.until(CPUS, allocatable=12)
        free = {f"unit-{number}" for number in (2, 3, 9, 10, 11)}

        chosen = await kubelet.preferred(CPUS, free, ("unit-10",), 3)

    assert chosen == ("unit-10", "unit-2", "unit-3")


@pytest.mark.parametrize(
    "entry",
    [
        "NRI_RESMGR_DEVICES_X=",
        "NRI_RESMGR_DEVICES_X=a/b",
        "NRI_RESMGR_DEVICES_X=a/b=-1",
        "NRI_RESMGR_DEVICES_X=a/b=0",
        "NRI_RESMGR_DEVICES_X=a/b=1e3",
        "NRI_RESMGR_DEVICES_X=a/b=99999999999",
        "NRI_RESMGR_DEVICES_X=cpu=2",
        "OTHER=NRI_RESMGR_DEVICES_X=a/b=2",
    ],
)
def test_malformed_variables_are_ignored(entry: str) -> None:
    assert read_devices([entry]) == {}
