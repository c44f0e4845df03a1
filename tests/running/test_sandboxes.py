"""The sandbox of a virtual machine is where the containers of its pod are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.running.delivery import ByRuntime
from nri_resmgr.app.running.vm_pods import VmPods
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.values import CpuSet
from tests.app.node import asking_for
from tests.running.vm_node import ALL, KATA, POD, vm_node
from tests.waiting import until


def announcing(**cpus: int) -> str:
    limits = {name: {"limits": {"cpu": n, "memory": "1Gi"}} for name, n in cpus.items()}
    return json.dumps({"containers": limits})


async def test_a_sandbox_has_the_cpus_of_its_containers(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod()
        app = await vm.create("app", 2)
        await vm.until_at(app)
        db = await vm.create("db", 2)
        await vm.until_at(f"{CpuSet.parse(app) | CpuSet.parse(db)}")
        await vm.node.runtime.stop_container("app")
        await vm.until_at(db)

        assert vm.written("cpuset.mems") == "0"


async def test_the_place_of_a_pod_is_its_own_before_its_containers(
    tmp_path: Path,
) -> None:
    # Without placePods: a virtual machine is placed as a whole in any case.
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod(announced=announcing(app=2, db=1))
        await until(lambda: vm.written() != ALL)
        early = vm.written()
        containers = [await vm.create("app", 2), await vm.create("db", 1)]

        assert CpuSet.parse(early) == CpuSet.union(map(CpuSet.parse, containers))
        await vm.until_at(early)


async def test_the_overhead_of_a_sandbox_runs_on_shared_cpus(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod(overhead=0.5)
        await vm.until_at("1-7")
        other = Pod(id="other", name="other", namespace="shop")
        await vm.node.runtime.run_pod(
            msgspec.structs.replace(
                other, linux=LinuxPod(cgroup_parent="/kubepods/podother")
            )
        )
        values = LinuxContainer(resources=asking_for(2))
        await vm.node.runtime.create_container(
            "other", Container(id="other", name="other", linux=values)
        )

        # It is kept off the CPUs that another pod has got for itself.
        theirs = CpuSet.parse(vm.node.recorded("other"))
        await vm.until_at(f"{CpuSet.parse('1-7') - theirs}")


async def test_without_containers_it_is_not_confined(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod()
        await vm.until_at(await vm.create("app", 2))
        await vm.node.runtime.stop_container("app")
        await vm.until_at(ALL)

        (status,) = vm.sandboxes.statuses()
        assert not status.wanted


async def test_values_written_by_kata_are_compared_at_the_start_of_a_container(
    tmp_path: Path,
) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod(overhead=0.5)
        app = await vm.create("app", 2)
        await vm.until_at("1-7")
        vm.make_cgroup()  # of all its containers, as Kata does
        await vm.node.runtime.start_container("app")
        await vm.until_at("1-7")

        assert CpuSet.parse(app) <= CpuSet.parse("1-7")


async def test_a_sandbox_of_runc_is_left_alone(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup(f"{POD}/vm")
        await vm.run_pod(handler="runc", overhead=0.5)
        await vm.create("app", 2)
        await vm.node.runtime.start_container("app")

        assert vm.written(folder=f"{POD}/vm") == ALL
        assert not list(vm.sandboxes.statuses())


async def test_the_cgroup_of_the_oci_spec_is_found_too(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup(f"{POD}/vm")
        await vm.run_pod()
        app = await vm.create("app", 2)
        await until(lambda: vm.written(folder=f"{POD}/vm") == app)


async def test_a_missing_cgroup_is_reported_once_and_found_later(
    tmp_path: Path,
) -> None:
    async with vm_node(tmp_path) as vm:
        with capture_logs() as lines:
            await vm.run_pod()
            await vm.create("app", 2)
            await until(lambda: [one.why for one in vm.sandboxes.statuses()] != [""])
            (status,) = vm.sandboxes.statuses()
            # Each of these looks for it again.
            await vm.node.runtime.start_container("app")
            db = await vm.create("db", 1)
            await asyncio.sleep(0.2)
            vm.make_cgroup()
            await vm.node.runtime.start_container("db")
            await until(lambda: [one.why for one in vm.sandboxes.statuses()] == [""])
        found = [one for one in lines if one["event"] == "sandbox.not-pinned"]

        why = f"no cgroup of the sandbox is found: /{KATA} or /{POD}/vm"
        assert status.why == why
        assert [one["why"] for one in found] == [why]
        assert CpuSet.parse(db) <= CpuSet.parse(vm.written())


async def test_a_new_session_finds_pods_that_run(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod()
        app = await vm.create("app", 2)
        await vm.until_at(app)
        vm.node.plugin.vm_pods.forget("vm")  # as a new process
        vm.make_cgroup()
        await vm.node.begin_again()
        await vm.until_at(app)


async def test_where_cgroups_are_not_written_the_reason_is_reported(
    tmp_path: Path,
) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        vm.node.plugin.use_delivery(ByRuntime(vm.node.plugin, "not here"))
        await vm.run_pod()
        await vm.create("app", 2)
        await until(
            lambda: [one.why for one in vm.sandboxes.statuses()] == ["not here"]
        )

        assert vm.written() == ALL


async def test_a_removed_pod_is_discarded(tmp_path: Path) -> None:
    async with vm_node(tmp_path) as vm:
        vm.make_cgroup()
        await vm.run_pod()
        await vm.until_at(await vm.create("app", 2))
        await vm.node.runtime.stop_pod("vm")
        await vm.node.runtime.remove_pod("vm")

        assert not list(vm.sandboxes.statuses())


@pytest.mark.parametrize(
    ("handler", "is_vm"),
    [
        pytest.param("kata", True, id="the usual one"),
        pytest.param("kata-clh", True, id="one of several"),
        pytest.param("vm", True, id="the operator's"),
        pytest.param("runc", False, id="the runtime's default"),
        pytest.param("", False, id="none"),
    ],
)
def test_handlers_are_patterns(handler: str, *, is_vm: bool) -> None:
    pods = VmPods(("kata*", "vm"))
    pods.add(Pod(id="p", runtime_handler=handler))

    assert ("p" in pods.present) is is_vm
