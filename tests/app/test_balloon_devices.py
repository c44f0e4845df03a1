"""Which CPUs a type that is close to a path of sysfs takes first."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.configuration.build import build_policy, host_warnings
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.tree import BadHostFile, HostTree
from nri_resmgr.kubelet.sockets import why_no_devices
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.balloon_types import cpus_close_to
from nri_resmgr.topology.synthetic import parse_spec

MACHINE = parse_spec("2s4c1t")  # node 0: 0-3, node 1: 4-7
CARD = "sys/devices/pci0000:80/0000:81:00.0"


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    files = {
        f"{CARD}/numa_node": "1",
        f"{CARD}/net/ens3/mtu": "1500",
        "sys/devices/system/cpu/cpu6/cache/index2/shared_cpu_list": "6-7",
        "sys/devices/pci0000:00/0000:00:01.0/local_cpulist": "0-1",
        "sys/devices/pci0000:00/0000:00:02.0/local_cpulist": "many",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    net = tmp_path / "sys/class/net"
    net.mkdir(parents=True)
    (net / "ens3").symlink_to(tmp_path / CARD / "net/ens3")
    return HostTree(tmp_path)


@pytest.mark.parametrize(
    ("path", "cpus"),
    [
        pytest.param("/sys/devices/system/node/node1", "4-7", id="a node"),
        pytest.param(
            "/sys/devices/system/node/node7", "", id="no node of this machine"
        ),
        pytest.param("/sys/devices/system/cpu/cpu6", "6", id="a CPU"),
        pytest.param("/sys/devices/system/cpu/cpu6/cache/index2", "6-7", id="a cache"),
        pytest.param("/sys/class/net/ens3", "4-7", id="a network card, by its link"),
        pytest.param("/sys/devices/pci0000:00/0000:00:01.0", "0-1", id="local CPUs"),
        pytest.param(
            "/sys/devices/pci0000:00/0000:00:01.0/local_cpulist", "0-1", id="a file"
        ),
        pytest.param("/sys/class/net/absent", "", id="nothing that is there"),
    ],
)
def test_cpus_close_to_a_path(path: str, cpus: str, host: HostTree) -> None:
    assert str(cpus_close_to(path, MACHINE, host)) == cpus


def test_a_malformed_sysfs_file_is_an_error(host: HostTree) -> None:
    with pytest.raises(BadHostFile):
        cpus_close_to("/sys/devices/pci0000:00/0000:00:02.0", MACHINE, host)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("/sys/devices/system/node/node1", "", id="a node"),
        pytest.param(
            "/sys/devices/system/cpu/cpu7/cache/index2",
            "this machine has no /sys/devices/system/cpu/cpu7/cache/index2, so it has "
            "no effect",
            id="no such cache",
        ),
        pytest.param("/sys/class/net/ens3", "", id="a network card"),
        pytest.param(
            "/sys/devices/system/node/node7",
            "this machine has no /sys/devices/system/node/node7, so it has no effect",
            id="no such node",
        ),
        pytest.param(
            "/sys/devices/system/cpu/cpu8",
            "this machine has no /sys/devices/system/cpu/cpu8, so it has no effect",
            id="no such CPU",
        ),
        pytest.param(
            "/sys/class/net/absent",
            "this machine has no /sys/class/net/absent, so it has no effect",
            id="no such card",
        ),
    ],
)
@pytest.mark.parametrize("key", ["preferCloseToDevices", "preferFarFromDevices"])
def test_a_device_without_a_place_is_a_warning(
    name: str, why: str, key: str, host: HostTree
) -> None:
    config = parse_config(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
        f"spec: {{balloonTypes: [{{name: a, {key}: ['{name}']}}]}}\n"
    )

    with capture_logs() as lines:
        build_policy(config, MACHINE, host)

    path = f"$.spec.balloonTypes[0].{key}[0]"
    expected = [(path, why)] if why else []
    assert [(one["path"], one["why"]) for one in lines] == expected
    assert list(host_warnings(config, MACHINE, host)) == expected


@pytest.mark.parametrize(
    ("key", "count"), [("preferCloseToDevices", 0), ("preferFarFromDevices", 1)]
)
def test_resources_of_the_kubelet_can_only_be_near(
    key: str, count: int, host: HostTree
) -> None:
    config = parse_config(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
        f"spec: {{balloonTypes: [{{name: a, {key}: ['podresourceapi:*/gpu']}}]}}\n"
    )

    why = (
        "podresourceapi:*/gpu has no effect: only preferCloseToDevices can name "
        "resources of the kubelet"
    )
    assert [one for _, one in host_warnings(config, MACHINE, host)] == [why] * count


GPUS = parse_config(
    "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
    "  balloonTypes:\n  - name: a\n    preferCloseToDevices: ['podresourceapi:*/gpu']\n"
)
NEAR_GPUS = "$.spec.balloonTypes[0].preferCloseToDevices[0]"


@pytest.mark.parametrize("tree", ["host", "no host"])
def test_resources_of_a_kubelet_that_reports_none_are_a_warning(
    tree: str, tmp_path: Path, host: HostTree
) -> None:
    found = host_warnings(
        GPUS,
        MACHINE,
        host if tree == "host" else None,
        lambda: why_no_devices(tmp_path / "kubelet"),
    )

    socket = tmp_path / "kubelet/pod-resources/kubelet.sock"
    why = (
        f"podresourceapi:*/gpu has no effect: {socket}: no such socket; kubelets have "
        "it from 1.28 on"
    )
    assert found == ((NEAR_GPUS, why),)


def test_resources_of_a_kubelet_that_is_not_asked_are_a_warning() -> None:
    found = host_warnings(GPUS, MACHINE, None, lambda: why_no_devices(None))

    why = "podresourceapi:*/gpu has no effect: --kubelet-dir is none"
    assert found == ((NEAR_GPUS, why),)


def test_a_kubelet_with_the_socket_is_enough(tmp_path: Path) -> None:
    (tmp_path / "pod-resources").mkdir()
    (tmp_path / "pod-resources/kubelet.sock").touch()

    assert host_warnings(GPUS, MACHINE, None, lambda: why_no_devices(tmp_path)) == ()


def test_the_plugin_warns_with_each_configuration_that_is_new(tmp_path: Path) -> None:
    options = PluginOptions(why_no_devices=lambda: "the kubelet has no such socket")

    with capture_logs() as lines:
        plugin = ResourcePolicy(MACHINE, plugin_options=options)
        reconfigure(plugin, GPUS)

    why = "podresourceapi:*/gpu has no effect: the kubelet has no such socket"
    assert [
        (one["path"], one["why"])
        for one in lines
        if one["event"] == "configuration.warning"
    ] == [(NEAR_GPUS, why)]


def test_without_a_host_only_nodes_and_cpus_are_known() -> None:
    config = parse_config(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
        "  balloonTypes:\n  - name: a\n    preferCloseToDevices:\n"
        "    - /sys/class/net/absent\n    - /sys/devices/system/node/node2\n"
    )

    found = host_warnings(config, MACHINE, None)

    assert [path for path, _ in found] == [
        "$.spec.balloonTypes[0].preferCloseToDevices[1]"
    ]
