"""What may be missing, what is taken instead, and that it is logged."""

from __future__ import annotations

import re
from typing import Any

import pytest
from structlog.testing import capture_logs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.tree import MissingHostFile
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"


def read_without(spec: str, pattern: str, **more: str) -> tuple[Machine, list[Any]]:
    """Read a machine without the files that match; say what was logged."""
    full = sysfs_files(parse_spec(spec))
    files = {
        name: text for name, text in full.files.items() if not re.search(pattern, name)
    }
    with capture_logs() as logs:
        machine = read_machine(RecordedTree({**files, **more}, full.links))
    return machine, [
        tuple(str(v) for k, v in entry.items() if k not in ("event", "log_level"))
        for entry in logs
        if entry["event"] == "topology.fallback"
    ]


def test_nothing_is_logged_where_nothing_is_missing() -> None:
    assert read_without("2s2c2t hbm=1Gi", "nothing")[1] == []


def test_without_numa_all_is_one_node() -> None:
    machine, logs = read_without("2s2c memory=1Gi", NODE)

    assert [(n.id, str(n.cpus), n.memory) for n in machine.nodes] == [
        (0, "0-3", 2 << 30)
    ]
    assert machine.distances == ((10,),)
    assert logs == [(NODE, "one node")]


def test_nodes_are_found_without_their_list() -> None:
    machine, _ = read_without("2s2c ids=1,4", f"{NODE}/online")

    assert [node.id for node in machine.nodes] == [1, 4]


def test_without_distances_the_kernels_own_are_taken() -> None:
    machine, logs = read_without("2s2c", "/distance$")

    assert machine.distances == ((10, 20), (20, 10))
    assert logs == [("distance", "10 and 20")]


def test_without_topology_every_cpu_is_a_core() -> None:
    machine, logs = read_without("2s2c2t", "/topology/")

    assert [str(core.cpus) for core in machine.cores] == [str(n) for n in range(8)]
    assert len(machine.packages) == 1
    assert logs == [("topology", "a core per CPU")]


def test_without_caches_there_are_none() -> None:
    machine, logs = read_without("2c", "/cache/")

    assert machine.caches == ()
    assert logs == [("cache", "no caches")]


def test_a_cache_without_id_has_no_resctrl_domain() -> None:
    machine, _ = read_without("2c", "index3/id$")

    assert [(c.id, str(c.cpus)) for c in machine.caches_at(3)] == [(None, "0-1")]


def test_old_kernels_have_no_dies_clusters_and_another_name_for_siblings() -> None:
    old = {f"{CPU}/cpu{n}/topology/thread_siblings_list": "0-1" for n in (0, 1)}
    machine, logs = read_without(
        "1d1c2t cluster=1", "die_id|cluster_id|core_cpus_list", **old
    )

    assert (machine.cores[0].die, machine.cores[0].cluster) == (0, None)
    assert machine.cores[0].cpus == CpuSet.of(0, 1)
    assert logs == []


def test_without_a_list_of_present_cpus_the_online_ones_are_taken() -> None:
    machine, logs = read_without("4c offline=3", f"{CPU}/present")

    assert str(machine.present) == "0-2"
    assert logs == [(f"{CPU}/present", "online")]


def test_isolated_cpus_that_are_offline_do_not_count() -> None:
    machine, _ = read_without("4c offline=3", "nothing", **{f"{CPU}/isolated": "2-3,9"})

    assert machine.isolated == CpuSet.of(2)


def test_an_unknown_package_is_package_0() -> None:
    unknown = {f"{CPU}/cpu{n}/topology/physical_package_id": "-1" for n in range(4)}
    machine, logs = read_without("4c", "nothing", **unknown)

    assert [package.id for package in machine.packages] == [0]
    assert logs == [("package of CPU 0-3", "package 0")]


def test_offline_cpus_in_a_node_do_not_count() -> None:
    old = {f"{NODE}/node1/cpulist": "2-3"}  # before Linux 4.14
    machine, logs = read_without("2s2c offline=3", "nothing", **old)

    assert [str(node.cpus) for node in machine.nodes] == ["0-1", "2"]
    assert logs == []


def test_caches_may_have_a_mask_of_cpus_only() -> None:
    spec = "2s40c2t"
    masks = {
        name.replace("_list", "_map"): mask_of(text)
        for name, text in sysfs_files(parse_spec(spec)).files.items()
        if name.endswith("/shared_cpu_list")
    }
    machine, logs = read_without(spec, "shared_cpu_list$", **masks)

    assert machine.caches == parse_spec(spec).caches
    assert logs == []


def mask_of(cpus: str) -> str:
    """Write CPUs as the kernel does, in words of 32 bits."""
    words = [0] * 5
    for cpu in CpuSet.parse(cpus):
        words[-1 - cpu // 32] |= 1 << cpu % 32
    return ",".join(f"{word:08x}" for word in words)


def test_nodes_of_emulated_numa_share_their_cpus() -> None:
    """As on a Raspberry Pi 5: nodes of a quarter of the memory, each with all CPUs."""
    machine, logs = read_without(
        "1s4c memory=1Gi dram=3x1Gi",
        "initiators|/node/node[^0]/distance",
        **{f"{NODE}/node{n}/cpulist": "0-3" for n in range(4)},
        **{f"{NODE}/node{n}/distance": "10 10 10 10" for n in range(4)},
    )

    assert [(str(node.cpus), str(node.kind)) for node in machine.nodes] == [
        ("0-3", "dram")
    ] * 4
    assert str(machine.nearest_memory(CpuSet.of(2))) == "0-3"
    assert machine.node_of(2).id == 0
    assert logs == [("node 1-3 with CPUs of another one", "CPUs of both")]


def test_memory_without_cpus_beside_emulated_nodes_is_dram() -> None:
    """Two nodes have all CPUs, and two have none: all are parts of one memory."""
    machine, logs = read_without(
        "1s4c memory=1Gi dram=3x1Gi",
        "initiators|/node/node[^0]/distance",
        **{f"{NODE}/node{n}/cpulist": "0-3" if n < 2 else "" for n in range(4)},
        **{f"{NODE}/node{n}/distance": "10 10 10 10" for n in range(4)},
    )

    assert [str(node.kind) for node in machine.nodes] == ["dram"] * 4
    assert logs == [("node 1 with CPUs of another one", "CPUs of both")]


@pytest.mark.parametrize(
    ("lists", "kinds"),
    [
        pytest.param(
            {"cpu_atom": "2-3"}, ["performance 0-1", "efficient 2-3"], id="one list"
        ),
        pytest.param(
            {"cpu_core": "0-1"}, ["performance 0-1", "efficient 2-3"], id="the other"
        ),
        pytest.param(
            {"cpu_core": "0", "cpu_atom": "1-2", "cpu_lowpower": "3"},
            ["performance 0", "efficient 1-2", "other 3"],
            id="three lists",
        ),
        pytest.param(
            {"cpu_core": "0", "cpu_atom": "1-2"},
            ["performance 0", "efficient 1-2", "other 3"],
            id="a CPU that no list names",
        ),
    ],
)
def test_kinds_of_cores(lists: dict[str, str], kinds: list[str]) -> None:
    more = {f"/sys/devices/{name}/cpus": cpus for name, cpus in lists.items()}
    machine, _ = read_without("4c", "nothing", **more)

    assert [f"{kind} {machine.cpus_of_kind(kind)}" for kind in machine.kinds] == kinds


REMOTE = f"{NODE}/node1"


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        pytest.param(
            {
                "/sys/bus/nd/devices/region0/target_node": "1",
                f"{REMOTE}/access0/initiators/read_bandwidth": "900000",
            },
            MemoryKind.PMEM,
            id="a persistent region, whatever its speed",
        ),
        pytest.param(
            {f"{REMOTE}/access0/initiators/read_bandwidth": "900000"},
            MemoryKind.HBM,
            id="faster than DRAM",
        ),
        pytest.param(
            {f"{REMOTE}/access0/initiators/read_bandwidth": "60000"},
            MemoryKind.CXL,
            id="much slower than DRAM",
        ),
        pytest.param(
            {f"{REMOTE}/access0/initiators/read_bandwidth": "190000"},
            MemoryKind.DRAM,
            id="about as fast as DRAM",
        ),
        pytest.param(
            {
                f"{REMOTE}/access0/initiators/read_bandwidth": "1",
                f"{REMOTE}/access1/initiators/read_bandwidth": "900000",
            },
            MemoryKind.HBM,
            id="the best CPU's view, not a device's",
        ),
    ],
)
def test_the_kind_of_memory_follows_the_best_evidence(
    more: dict[str, str], kind: MemoryKind
) -> None:
    machine, logs = read_without("1c cxl=1Gi", "/dax/|region1", **more)

    assert (machine.node(1).kind, logs) == (kind, [])


TIERS = "/sys/devices/virtual/memory_tiering"


@pytest.mark.parametrize(
    ("tier", "kind"), [("2", MemoryKind.HBM), ("22", MemoryKind.CXL)]
)
def test_else_the_kernels_tiers_report(tier: str, kind: MemoryKind) -> None:
    more = {
        f"{TIERS}/memory_tier4/nodelist": "0",
        f"{TIERS}/memory_tier{tier}/nodelist": "1",
    }
    machine, logs = read_without("1c cxl=1Gi", "region1|bandwidth", **more)

    assert (machine.node(1).kind, logs) == (kind, [])


@pytest.mark.parametrize(
    ("size", "kind"), [("15Gi", MemoryKind.HBM), ("16Gi", MemoryKind.PMEM)]
)
def test_last_of_all_the_size_is_a_guess(size: str, kind: MemoryKind) -> None:
    more = {f"{TIERS}/memory_tier4/nodelist": "0-1"}
    machine, logs = read_without(f"1c cxl={size}", "region1|bandwidth", **more)

    assert (machine.node(1).kind, logs) == (kind, [("node1 memory kind", str(kind))])


def test_memory_of_a_node_with_all_cpus_offline_is_dram() -> None:
    folder = f"{NODE}/node1"
    more = {f"{folder}/cpu1": "", f"{folder}/access0/initiators/read_bandwidth": "1"}
    machine, logs = read_without("2s1c offline=1", "nothing", **more)

    assert (machine.node(1).cpus, machine.node(1).kind) == (CpuSet(), MemoryKind.DRAM)
    assert logs == []


POLICY = f"{CPU}/cpufreq/policy"


@pytest.mark.parametrize(
    ("files", "governors"),
    [
        pytest.param(
            {
                f"{POLICY}0/affected_cpus": "0 1",
                f"{POLICY}0/scaling_governor": "powersave",
                f"{POLICY}2/affected_cpus": "2",
                f"{POLICY}2/scaling_governor": "performance",
            },
            ["powersave", "powersave", "performance"],
            id="a policy may rule several CPUs",
        ),
        pytest.param(
            {f"{POLICY}{n}/scaling_governor": f"g{n}" for n in range(4)},
            ["g0", "g1", "g2"],
            id="or one each, offline ones too",
        ),
        pytest.param(
            {
                f"{POLICY}0/affected_cpus": "0 1 2",
                f"{POLICY}0/scaling_governor": "powersave",
                f"{POLICY}3/related_cpus": "3",
                f"{POLICY}7/related_cpus": "7",
            },
            ["powersave"] * 3,
            id="policies of offline CPUs have no answers",
        ),
    ],
)
def test_frequency_policies(files: dict[str, str], governors: list[str]) -> None:
    machine, _ = read_without("4c offline=3", "nothing", **files)

    assert [cpu.governor for cpu in machine.cpus] == governors


def test_a_frequency_may_be_fixed() -> None:
    files = {f"{POLICY}0/cpuinfo_{end}_freq": "2000000" for end in ("min", "max")}
    machine, _ = read_without("1c", "nothing", **files)

    assert (machine.cpu(0).min, machine.cpu(0).max) == (2_000_000, 2_000_000)


def test_some_cpus_without_topology_are_an_error() -> None:
    with pytest.raises(MissingHostFile, match="cpu0/topology/thread_siblings_list"):
        read_without("4c", "cpu[01]/topology")
