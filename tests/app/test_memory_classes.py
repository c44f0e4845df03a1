"""Memory classes of containers, over the socket of a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.classes.memory import NoSuchNodes
from nri_resmgr.policies import parse_config
from nri_resmgr.stub.model import (
    Container,
    MemoryPolicy,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    Pod,
)
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.memory_node import (
    CLASS,
    EPC,
    HIGH,
    MACHINE,
    MISC,
    POLICY,
    QOS,
    SPEC,
    make_v1,
    run,
    unified,
    v2_host,
)
from tests.app.node import config, running_node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return v2_host(tmp_path)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, {}, id="nothing is asked for"),
        pytest.param(
            {QOS: "bronze"},
            {"memory.high": str(1 << 29), "memory.swap.max": "max"},
            id="half of the limit, and as much swap as there is",
        ),
        pytest.param({QOS: "none"}, {}, id="a class that shares out nothing"),
        pytest.param({QOS: "bronze", f"{QOS}/web": ""}, {}, id="a container opts out"),
        pytest.param(
            {QOS: "bronze", HIGH: "700M"},
            {"memory.high": "700M", "memory.swap.max": "max"},
            id="a file of its own goes before the class",
        ),
        pytest.param({EPC: "64Mi"}, {"misc.max": "sgx_epc 67108864"}, id="SGX memory"),
        pytest.param(
            {EPC: "64Mi", "misc.max.memory-qos.nri.io": "sev_es 1"},
            {"misc.max": "sev_es 1"},
            id="a file is set once",
        ),
        pytest.param(
            {f"{EPC}/container.other": "64Mi"}, {}, id="another container's limit"
        ),
    ],
)
async def test_files_of_the_cgroup(
    folder: Path, annotations: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    assert unified(await run(folder, annotations)) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="nothing is asked for"),
        pytest.param(
            {CLASS: "near"},
            MemoryPolicy(MemoryPolicyMode.BIND, "1", (MemoryPolicyFlag.STATIC_NODES,)),
            id="the node of its CPUs",
        ),
        pytest.param(
            {CLASS: "spread", f"{CLASS}/container.web": ""}, None, id="it opts out"
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_PREFERRED, nodes: 1}"},
            MemoryPolicy(MemoryPolicyMode.PREFERRED, "1"),
            id="a policy of its own",
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_LOCAL}"},
            MemoryPolicy(MemoryPolicyMode.LOCAL),
            id="a policy without nodes",
        ),
    ],
)
async def test_numa_policies(
    folder: Path, annotations: Mapping[str, str], expected: MemoryPolicy | None
) -> None:
    created = await run(folder, annotations)

    linux = created.adjustment.linux
    assert linux
    assert linux.memory_policy == expected


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        pytest.param(
            {QOS: "gold"},
            "default/web/web asks for memory QoS class 'gold'; known: bronze, none; to "
            "help, name one of these, or add the class to the configuration",
            id="an unknown memory QoS class",
        ),
        pytest.param(
            {CLASS: "gold"},
            "default/web/web asks for memory policy class 'gold'; known: near, spread, "
            "far; to help, name one of these, or add the class to the configuration",
            id="an unknown memory policy class",
        ),
        pytest.param(
            {CLASS: "near", POLICY: "{mode: MPOL_LOCAL}"},
            f"annotation {CLASS}: 'near' cannot be combined with {POLICY}: "
            "remove one of them",
            id="a class and a policy",
        ),
        pytest.param(
            {"memory.low.memory-qos.nri.io": "1M"},
            "default/web/web sets memory.low by annotation, which is not allowed; "
            "allowed: memory.high, memory.swap.max, misc.max; to help, add it to "
            "unifiedAnnotations of the configuration",
            id="a file that is not allowed",
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_BIND, nodes: 7}"},
            "default/web/web: nodes '7' of its memory policy mean 7 here: the machine "
            "has 0-1",
            id="a node that is not there",
        ),
        pytest.param(
            {MISC: "tdx 1"},
            "default/web/web limits tdx in misc.max; this machine counts sgx_epc, "
            "sev_es (misc.capacity); to help, remove the annotation",
            id="a resource that is not counted",
        ),
    ],
)
async def test_an_unsupported_class_is_refused_and_leaves_no_grant(
    folder: Path, annotations: Mapping[str, str], sentence: str
) -> None:
    async with running_node(folder, MACHINE, SPEC) as node:
        with pytest.raises(PluginRefused) as found:
            await node.run("web", 2, annotations)
        left = list(node.plugin.state.ledger.entries)

    assert (found.value.message, left) == (sentence, [])


async def test_a_resource_that_is_counted_later_is_found(folder: Path) -> None:
    async with running_node(folder, MACHINE, SPEC) as node:
        capacity = folder / "host/sys/fs/cgroup/misc.capacity"
        capacity.write_text(f"{capacity.read_text()}tdx 5\n")
        created = await node.run("web", 2, {MISC: "tdx 1"})

    assert unified(created) == {"misc.max": "tdx 1"}


async def test_nodes_outside_of_the_grant_are_refused(folder: Path) -> None:
    # One node is filled, so that the other one is its place.
    async with running_node(folder, MACHINE, SPEC) as node:
        await node.run("first", 4)
        assert node.pinned("first") == ("4-7", "1")
        with pytest.raises(PluginRefused) as found:
            await node.run("web", 1, {CLASS: "far"})

        assert list(node.plugin.state.ledger.entries) == ["first"]
    assert found.value.message == (
        "default/web/web: nodes '1' of its memory policy mean 1 here: the container "
        "may use the memory of 0"
    )


@pytest.mark.parametrize(
    ("annotations", "files"),
    [
        pytest.param({QOS: "bronze"}, "memory.high, memory.swap.max", id="a class"),
        pytest.param({HIGH: "1G"}, "memory.high", id="a file"),
        pytest.param({EPC: "1M"}, "misc.max", id="a limit"),
    ],
)
async def test_cgroups_of_version_1_have_no_such_files(
    folder: Path, annotations: Mapping[str, str], files: str
) -> None:
    make_v1(folder)

    with pytest.raises(PluginRefused) as found:
        await run(folder, annotations)

    assert found.value.message == (
        f"default/web/web asks for {files} by its annotations, which cgroup v1 "
        "does not have; to help, remove them, or boot this node with cgroup v2 "
        "(systemd.unified_cgroup_hierarchy=1)"
    )


async def test_cgroups_of_version_1_allow_classes_that_need_no_files(
    folder: Path,
) -> None:
    make_v1(folder)

    created = await run(folder, {QOS: "none", CLASS: "near"})

    assert unified(created) == {}


async def test_a_runtime_that_sets_no_policies_is_not_asked_to(folder: Path) -> None:
    with pytest.raises(PluginRefused) as found:
        await run(folder, {CLASS: "near"}, level=NriLevel(0, 11))

    assert "NRI 0.11.0 of " in found.value.message
    assert "cannot set, 0.12.0 could; to help" in found.value.message


async def test_the_first_release_that_sets_policies_is_asked_to(folder: Path) -> None:
    created = await run(folder, {POLICY: "{mode: MPOL_LOCAL}"}, level=NriLevel(0, 12))

    assert created.adjustment.linux
    policy = MemoryPolicy(MemoryPolicyMode.LOCAL)
    assert created.adjustment.linux.memory_policy == policy


def test_a_refused_container_is_never_counted() -> None:
    # Without a runtime, which would report that the container is gone.
    plugin = ResourcePolicy(parse_spec(MACHINE), parse_config(config(SPEC)))
    wish = {POLICY: "{mode: MPOL_BIND, nodes: 7}"}
    before = plugin.state

    with pytest.raises(NoSuchNodes):
        plugin.create_container(
            Pod("p", annotations=wish), Container("c", pod_sandbox_id="p")
        )

    assert plugin.state is before


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({QOS: "bronze", HIGH: "1G"}, id="memory QoS"),
        pytest.param({CLASS: "near", POLICY: "x"}, id="memory policies"),
        pytest.param({EPC: "what", MISC: "ever"}, id="limits"),
    ],
)
async def test_annotations_for_other_programs_are_ignored(
    folder: Path, annotations: Mapping[str, str]
) -> None:
    created = await run(folder, annotations, "{miscLimits: false}")

    assert unified(created) == {}
