"""The injector of network devices as a process, between network namespaces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import LinuxPod, Pod
from nri_resmgr.stub import Namespace as NamespaceOfPod
from nri_resmgr.testing import PluginRefused, Runtime
from tests.plugins.programs import PLUGINS, running_command
from tests.plugins.stories import LEVELS
from tests.real_host.namespaces import Namespace, new_namespace

pytestmark = pytest.mark.process

LEND: Final = """
import sys
from nri_resmgr.host.links import lend
lend("fast", sys.argv[1], "eth1", mtu=1)
"""

KEY: Final = "netdevices.noderesource.dev"


@attrs.frozen
class Node:
    """A host, one pod with a network of its own, and a folder."""

    host: Namespace
    pod: Namespace
    folder: Path

    @property
    def log(self) -> Path:
        """The log of the plugin; there at its end."""
        return self.folder / "log"

    @asynccontextmanager
    async def injector(self, runtime: Runtime, *flags: str) -> AsyncIterator[None]:
        """Run the plugin on the host."""
        program = str(PLUGINS / "network-device-injector")
        identity = ("--socket", str(runtime.socket_path), "--index", "10")
        command = (*self.host.enter, sys.executable, program, *identity, *flags)
        async with running_command(*command, log=self.log):
            await runtime.synchronized("10-network-device-injector")
            yield

    def new_pod(self, annotations: Mapping[str, str]) -> Pod:
        """Return a pod with the network."""
        network = LinuxPod(namespaces=(NamespaceOfPod("network", self.pod.path),))
        return Pod(name="web", namespace="shop", linux=network, annotations=annotations)

    def events(self, prefix: str) -> list[str]:
        """Return the lines of the log whose events start so, without times."""
        lines = self.log.read_text().splitlines()
        said = [line.partition("] ")[2].split() for line in lines]
        return [" ".join(words) for words in said if words[0].startswith(prefix)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with new_namespace() as host, new_namespace() as pod:
        host.add("fast", "slow")
        yield Node(host, pod, tmp_path)


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_a_pod_has_a_device_until_it_stops(node: Node, level: NriLevel) -> None:
    text = "[{name: fast, new_name: eth1, address: 192.0.2.2, prefix: 24, mtu: 1400}]"
    before = node.host.devices()
    async with Runtime(node.folder, level) as runtime, node.injector(runtime):
        pod = await runtime.run_pod(node.new_pod({KEY: text}))
        during, inside = node.host.devices(), node.pod.devices()
        await runtime.stop_pod(pod.id)

    (device,) = inside.values()
    assert (set(before) - set(during), set(inside)) == ({"fast"}, {"eth1"})
    assert (device["mtu"], "UP" in device["flags"]) == (1400, True)
    addresses = [one for one in device["addr_info"] if one["family"] == "inet"]
    assert [(one["local"], one["prefixlen"]) for one in addresses] == [
        ("192.0.2.2", 24)
    ]
    after = node.host.devices()
    assert (after.keys(), node.pod.devices()) == (before.keys(), {})
    assert after["fast"]["address"] == device["address"] == before["fast"]["address"]
    assert "UP" not in after["fast"]["flags"]
    assert "ifalias" not in after["fast"]
    assert [line.split()[0] for line in node.events("device")] == [
        "device.lent",
        "device.returned",
    ]


async def test_the_narrowest_and_newest_key_counts(node: Node) -> None:
    old, as_read = "netdevices.nri.containerd.io", "netdevice.noderesource.dev"
    keys = [old, as_read, KEY, f"{old}/pod", f"{as_read}/pod", f"{KEY}/pod"]
    names: list[str] = []
    annotations: dict[str, str] = {}
    async with Runtime(node.folder) as runtime, node.injector(runtime):
        for number, key in enumerate(keys):
            annotations[key] = f"[{{name: fast, new_name: eth{number}}}]"
            pod = await runtime.run_pod(node.new_pod(annotations))
            names += node.pod.devices()
            await runtime.stop_pod(pod.id)
        annotations[keys[-1]] = ""
        await runtime.run_pod(node.new_pod(annotations))

    assert names == [f"eth{number}" for number in range(len(keys))]
    assert node.pod.devices() == {}


async def test_an_address_without_a_prefix_is_one_of_one_host(node: Node) -> None:
    text = """
    - {name: fast, address: 192.0.2.2}
    - {name: slow, address: "2001:db8::2"}
    """
    async with Runtime(node.folder) as runtime, node.injector(runtime):
        await runtime.run_pod(node.new_pod({KEY: text}))
        devices = node.pod.devices()

    found = {
        (name, one["local"], one["prefixlen"])
        for name, device in devices.items()
        for one in device["addr_info"]
        if one["scope"] == "global"
    }
    assert found == {("fast", "192.0.2.2", 32), ("slow", "2001:db8::2", 128)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[{name: none}]", "shop/web: network device 'none': this host has none"),
        (
            "[{name: slow}, {name: fast, new_name: own}]",
            "network device 'fast': the pod has a device 'own' already",
        ),
        ("[{name: fast, mtu: 1}]", "network device 'fast': invalid argument"),
        ("[{name: lo, new_name: lo2}]", "network device 'lo': invalid argument"),
        ("[{name: fast}, {name: fast}]", "this host has none of that name"),
        ("{name: fast}", f"annotation {KEY}: $: expected a list, not a mapping"),
        ("[{name: fast, new: a}]", "$[0].new: unknown key"),
        ("[{name: fast, new_name: a%d}]", "$[0].new_name: 'a%d' is no name of a"),
        ("[{name: ..}]", "$[0].name: '..' is no name of a network device"),
        ("[{name: fast, address: here}]", "$[0].address: 'here' does not appear"),
        (
            "[{name: fast, address: 192.0.2.2, prefix: 33}]",
            "$[0].address: '192.0.2.2/33' does not appear to be",
        ),
    ],
)
async def test_a_refused_pod_gets_no_device_and_keeps_its_own(
    node: Node, text: str, sentence: str
) -> None:
    node.pod.add("own")
    before = node.host.devices().keys(), node.pod.devices().keys()
    async with Runtime(node.folder) as runtime, node.injector(runtime):
        with pytest.raises(PluginRefused) as refusal:
            await runtime.run_pod(node.new_pod({KEY: text}))

    assert sentence in refusal.value.message
    assert (node.host.devices().keys(), node.pod.devices().keys()) == before
    assert not any("ifalias" in one for one in node.host.all_devices().values())
    # Before the reply: runtimes differ in what they report of a refused pod.
    lent, returned = node.events("device.lent"), node.events("device.returned")
    assert (
        len(lent)
        == len(returned)
        == node.log.read_text().partition("handler.failed")[0].count("device.returned")
    )


def test_a_device_that_cannot_be_set_up_is_on_the_host_again(
    node: Node,
) -> None:
    before = node.host.devices().keys()

    done = subprocess.run(
        [*node.host.enter, sys.executable, "-c", LEND, node.pod.path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "network device 'fast': invalid argument" in done.stderr
    assert (node.host.devices().keys(), node.pod.devices()) == (before, {})


async def test_a_device_that_was_not_lent_is_not_taken(node: Node) -> None:
    asks = node.new_pod({KEY: "[{name: gone, new_name: own}]"})
    node.pod.add("own")
    async with Runtime(node.folder) as runtime:
        pod = await runtime.run_pod(asks)
        async with node.injector(runtime):
            await runtime.stop_pod(pod.id)

    assert "own" in node.pod.devices()
    assert node.events("device") == []


async def test_a_restarted_plugin_takes_back_what_the_first_one_lent(
    node: Node,
) -> None:
    async with Runtime(node.folder) as runtime:
        async with node.injector(runtime):
            pod = await runtime.run_pod(node.new_pod({KEY: "[{name: fast}]"}))
        async with node.injector(runtime):
            await runtime.stop_pod(pod.id)

    assert node.events("device") == ["device.returned device=fast pod=shop/web"]
    assert "fast" in node.host.devices()


async def test_a_pod_with_the_host_s_network_is_refused(node: Node) -> None:
    asks = Pod(name="web", namespace="shop", annotations={KEY: "[{name: fast}]"})
    async with Runtime(node.folder) as runtime, node.injector(runtime):
        with pytest.raises(PluginRefused, match="shop/web: has the host's network"):
            await runtime.run_pod(asks)

    assert "fast" in node.host.devices()


async def test_a_name_that_the_host_has_again_keeps_the_device_in_the_pod(
    node: Node,
) -> None:
    async with Runtime(node.folder) as runtime, node.injector(runtime):
        pod = await runtime.run_pod(node.new_pod({KEY: "[{name: fast}, {name: slow}]"}))
        node.host.ip("link", "add", "fast", "type", "veth")
        await runtime.stop_pod(pod.id)

    assert (set(node.pod.devices()), "slow" in node.host.devices()) == (
        {"fast"},
        True,
    )
    (line,) = node.events("device.not-returned")
    assert "network device 'fast': file exists" in line


async def test_a_network_that_is_gone_is_nothing_to_return(node: Node) -> None:
    with new_namespace() as pod_network:
        gone = Node(node.host, pod_network, node.folder)
        async with Runtime(node.folder) as runtime, gone.injector(runtime):
            pod = await runtime.run_pod(gone.new_pod({KEY: "[{name: fast}]"}))
            pod_network.end()
            await runtime.stop_pod(pod.id)

    assert len(node.events("device")) == 1  # lent


async def test_what_the_kernel_returned_has_its_name_again(node: Node) -> None:
    returned = ("link", "set", "dev", "fast", "name", "eth1", "alias", "fast")
    text = "[{name: fast, new_name: eth1}]"
    with new_namespace() as pod_network:
        gone = Node(node.host, pod_network, node.folder)
        asks = gone.new_pod({KEY: text})
    async with Runtime(node.folder) as runtime:
        pod = await runtime.run_pod(asks)
        node.host.ip(*returned)
        async with node.injector(runtime):
            await runtime.stop_pod(pod.id)
            stopped = node.host.devices()
            node.host.ip(*returned)
            await runtime.remove_pod(pod.id)
            removed = node.host.devices()
            node.host.ip(*returned)
            await runtime.run_pod(node.new_pod({KEY: text}))

    assert "fast" in stopped
    assert "fast" in removed
    assert not any("ifalias" in one for one in stopped.values())
    assert node.pod.devices().keys() == {"eth1"}
    assert [line.split()[0] for line in node.events("device")] == [
        "device.returned",
        "device.returned",
        "device.lent",
    ]


async def test_a_dry_run_moves_nothing(node: Node) -> None:
    before = node.host.devices()
    async with Runtime(node.folder) as runtime, node.injector(runtime, "--dry-run"):
        pod = await runtime.run_pod(node.new_pod({KEY: "[{name: fast}]"}))
        during = node.host.devices()
        await runtime.stop_pod(pod.id)

    assert (during, node.pod.devices()) == (before, {})
    assert node.events("device") == ["devices.withheld devices=['fast'] pod=shop/web"]
