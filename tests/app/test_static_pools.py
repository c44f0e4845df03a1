"""What containers of static pools get in their environment and command line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_proto import NriLevel
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.requests.static_pools import isolated_command, read_pool_request
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.losses import PlacesChanged
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import CreateResult, PluginRefused, Runtime, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.memory_node import POLICY, v2_host
from tests.app.node import SAFE, asking_for

DOCUMENT: Final = """
apiVersion: config.nri/v1alpha1
kind: StaticPoolsPolicy
spec:
  pools:
  - name: exclusive
    exclusive: true
    cpuLists: [{cpus: "2-3,1"}, {cpus: 4}, {cpus: "5,6"}]
  - name: shared
    cpuLists: [{cpus: "7"}]
  - name: infra
    cpuLists: [{cpus: "0"}]
"""
POOLS: Final = {"CMK_CPUS_INFRA": "0", "CMK_CPUS_SHARED": "7"}
_NAME: Final = "90-resource-policy"


class Node:
    """Pods of one container, called by the same name."""

    def __init__(self, runtime: Runtime, plugin: ResourcePolicy) -> None:
        self.runtime = runtime
        self.plugin = plugin

    async def run(
        self,
        name: str,
        *args: str,
        env: Mapping[str, str] = {},
        annotations: Mapping[str, str] = {},
    ) -> CreateResult:
        await self.runtime.run_pod(
            Pod(
                id=f"pod-{name}",
                name=name,
                namespace="default",
                annotations=annotations,
                linux=LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}"),
            )
        )
        container = Container(
            id=name,
            name=name,
            args=args,
            env=tuple(f"{key}={value}" for key, value in env.items()),
            linux=LinuxContainer(resources=asking_for(1)),
        )
        created = await self.runtime.create_container(f"pod-{name}", container)
        await self.runtime.start_container(name)
        return created

    def environment(self, name: str) -> dict[str, str]:
        """Return what the container's process finds."""
        return dict(self.runtime.container(name).environment)

    def args(self, name: str) -> tuple[str, ...]:
        return self.runtime.container(name).args

    def cpus(self, name: str) -> str:
        cpu = self.runtime.container(name).resources.cpu
        return cpu.cpus if cpu else ""


@asynccontextmanager
async def running_node(
    folder: Path, level: NriLevel = SAFE, document: str = DOCUMENT
) -> AsyncIterator[Node]:
    plugin = ResourcePolicy(parse_spec("1s1n8c1t"), parse_config(document))
    async with (
        Runtime(folder, level) as runtime,
        running_plugin(runtime, plugin, _NAME),
    ):
        yield Node(runtime, plugin)


async def test_containers_find_their_lists_as_they_are_written(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("web", "serve", env={"A": "1"})
        await node.run("db", "serve", env={"STP_POOL": "exclusive"})
        await node.run(
            "two", "serve", env={"STP_POOL": "exclusive", "CMK_NUM_CORES": "2"}
        )

        assert node.environment("web") == {
            "A": "1",
            "CMK_CPUS_ASSIGNED": "7",
            **POOLS,
        }
        assert node.environment("db") == {
            "STP_POOL": "exclusive",
            "CMK_CPUS_ASSIGNED": "2-3,1",
            **POOLS,
        }
        assert node.environment("two")["CMK_CPUS_ASSIGNED"] == "4,5,6"
        assert [node.cpus(name) for name in ("web", "db", "two")] == ["7", "1-3", "4-6"]
        assert node.args("db") == ("serve",)


async def test_the_command_line_of_cmk_is_taken_out(tmp_path: Path) -> None:
    cmk = ("cmk", "isolate", "--conf-dir=/etc/cmk", "--pool=exclusive")
    async with running_node(tmp_path) as node:
        await node.run("a", *cmk, "--socket-id=0", "--no-affinity", "--", "prog", "-v")
        await node.run("b", "bash", "-c", f"{' '.join(cmk)} prog 'x  y'")

        assert node.args("a") == ("prog", "-v")
        assert node.cpus("a") == ""
        assert node.environment("a") == {
            "STP_POOL": "exclusive",
            "STP_SOCKET_ID": "0",
            "STP_NO_AFFINITY": "1",
            "CMK_CPUS_ASSIGNED": "2-3,1",
            **POOLS,
        }
        assert node.args("b") == ("bash", "-c", "prog 'x  y'")
        assert node.cpus("b") == "4"


@pytest.mark.parametrize("level", [NriLevel(0, 9), NriLevel(0, 6)])
async def test_a_container_is_refused_where_the_runtime_cannot_change_command_lines(
    tmp_path: Path, level: NriLevel
) -> None:
    async with running_node(tmp_path, level) as node:
        with pytest.raises(PluginRefused, match="cannot change command lines") as why:
            await node.run("a", "cmk", "isolate", "--pool=exclusive", "prog")
        await node.run("b", "prog", env={"STP_POOL": "exclusive"})

        assert "ask for the pool by the variable STP_POOL" in str(why.value)
        assert node.environment("b")["CMK_CPUS_ASSIGNED"] == "2-3,1"


async def test_a_command_line_also_has_the_prefix_of_mpolset(tmp_path: Path) -> None:
    folder = v2_host(tmp_path)
    (program := folder / "libexec").write_bytes(b"\x7fELF")
    text = f"{DOCUMENT}  memoryPolicy: {{injectMpolset: true}}\n"
    plugin = ResourcePolicy(
        parse_spec("1s1n8c1t"),
        parse_config(text),
        tree=HostTree(folder / "host"),
        plugin_options=PluginOptions(run_dir=str(folder / "run"), mpolset=str(program)),
    )
    async with (
        Runtime(folder, NriLevel(0, 10)) as runtime,
        running_plugin(runtime, plugin, _NAME),
    ):
        node = Node(runtime, plugin)
        args = ("cmk", "isolate", "--pool=exclusive", "prog", "-v")
        await node.run("a", *args, annotations={POLICY: "{mode: MPOL_LOCAL}"})

        words = ("/.nri-mpolset", "--mode", "MPOL_LOCAL", "--", "prog", "-v")
        assert node.args("a") == words


async def test_a_restart_finds_the_lists_without_any_state(tmp_path: Path) -> None:
    cmk = ("cmk", "isolate", "--pool=exclusive")
    async with Runtime(tmp_path, SAFE) as runtime:
        for again in (False, True):
            machine = parse_spec("1s1n8c1t")
            plugin = ResourcePolicy(machine, parse_config(DOCUMENT))
            async with running_plugin(runtime, plugin, _NAME):
                node = Node(runtime, plugin)
                if again:
                    await node.run("e", env={"STP_POOL": "exclusive"})
                    continue
                await node.run("a", env={"STP_POOL": "exclusive"})
                await node.run("b", *cmk, "--no-affinity", "prog")
                await node.run("c", *cmk, "prog")
                await runtime.stop_container("a")
                await runtime.remove_container("a")

        # B is pinned nowhere: only its environment says what it has.
        assert node.environment("b")["CMK_CPUS_ASSIGNED"] == "4"
        assert (node.cpus("c"), node.cpus("e")) == ("5-6", "1-3")


def resources(**requests: str) -> dict[str, str]:
    """Return the annotation of a webhook."""
    named = {key.replace("lists", LISTS): value for key, value in requests.items()}
    amounts = {"cpu": "1", "memory": "1Gi", **named}
    every = {"requests": amounts, "limits": amounts}
    text = json.dumps({"containers": {"a": every}})
    return {"intel.com/resources": text}


LISTS: Final = "cmk.intel.com/exclusive-cores"


@pytest.mark.parametrize(
    ("annotations", "cores", "lists"),
    [
        (resources(lists="2"), "", "2-3,1,4"),
        (resources(lists="1"), "3", "2-3,1"),
        ({}, "2", "2-3,1,4"),
        ({}, "", "2-3,1"),
    ],
)
async def test_the_number_of_lists_follows_the_request(
    tmp_path: Path, annotations: Mapping[str, str], cores: str, lists: str
) -> None:
    env = {"STP_POOL": "exclusive"} | ({"CMK_NUM_CORES": cores} if cores else {})
    async with running_node(tmp_path) as node:
        await node.run("a", env=env, annotations=annotations)

        assert node.environment("a")["CMK_CPUS_ASSIGNED"] == lists


async def test_a_pod_without_a_request_for_lists_is_refused(tmp_path: Path) -> None:
    env = {"STP_POOL": "exclusive"}
    async with running_node(tmp_path) as node:
        with pytest.raises(PluginRefused, match=f"add {LISTS} to its requests"):
            await node.run("a", env=env, annotations=resources())


async def test_lists_that_containers_know_are_not_changed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("a", env={"STP_POOL": "infra"})
        fewer = DOCUMENT.replace('{cpus: "0"}', '{cpus: "0", socket: 0}')
        other = DOCUMENT.replace('{cpus: "7"}', '{cpus: "0"}').replace(
            'infra\n    cpuLists: [{cpus: "0"}]', 'infra\n    cpuLists: [{cpus: "7"}]'
        )
        reconfigure(node.plugin, parse_config(fewer))
        with pytest.raises(PlacesChanged, match="default/a/a has 0 of the pool infra"):
            reconfigure(node.plugin, parse_config(other))

        assert node.cpus("a") == "0"
        assert node.plugin.config == parse_config(fewer)


async def test_other_policies_change_neither_environment_nor_command_line(
    tmp_path: Path,
) -> None:
    document = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy"
    async with running_node(tmp_path, document=document) as node:
        args = ("cmk", "isolate", "--pool=exclusive", "prog")
        await node.run("a", *args, env={"STP_POOL": "exclusive"})

        assert node.environment("a") == {"STP_POOL": "exclusive"}
        assert node.args("a") == args


@pytest.mark.parametrize(
    ("env", "args", "found"),
    [
        ([], [], PoolRequest()),
        (["PATH=/bin", "X_STP_POOL=a", "CMK_PROC_FS=/proc"], ["sh"], PoolRequest()),
        (["STP_POOL=a", "STP_POOL=b=c"], [], PoolRequest("b=c")),
        (["STP_NO_AFFINITY"], [], PoolRequest(is_pinned=False)),
        (["STP_SOCKET_ID=1", "CMK_NUM_CORES=2"], [], PoolRequest("", "1", lists="2")),
        (["CMK_CPUS_ASSIGNED=1"], [], PoolRequest()),
        (
            ["STP_POOL=a", "STP_SOCKET_ID=1", "STP_NO_AFFINITY=1"],
            ["cmk", "isolate", "--pool=b", "--socket-id=0", "x"],
            PoolRequest("b", "0", is_pinned=False, by_command=True),
        ),
        (
            ["STP_SOCKET_ID=1"],
            ["cmk", "isolate", "--pool=b", "--no-affinity=false", "x"],
            PoolRequest("b", "1", by_command=True),
        ),
    ],
)
def test_the_request_is_read_from_environment_and_arguments(
    env: list[str], args: list[str], found: PoolRequest
) -> None:
    assert read_pool_request(env, args) == found


def test_assigned_cpus_are_read_of_running_containers_only() -> None:
    env = ["STP_POOL=a", "CMK_CPUS_ASSIGNED=4-6,7"]

    assert read_pool_request(env, [], is_new=False) == PoolRequest(
        "a", assigned="4-6,7"
    )
    assert read_pool_request(env, []) == PoolRequest("a")


SHELL: Final = "cmk isolate --pool=a"


@pytest.mark.parametrize(
    ("args", "left"),
    [
        (["cmk", "isolate", "--pool=a", "x", "-v"], ["x", "-v"]),
        (["cmk", "isolate", "--pool=a", "--", "x", "--", "-v"], ["x", "--", "-v"]),
        (["cmk", "isolate", "--pool=a", "x", "--", "-v", "--"], ["x", "-v", "--"]),
        (["/opt/bin/cmk", "isolate", "--pool", "a", "x"], ["x"]),
        (["cmk", "isolate", "-pool=a", "--new", "x"], ["x"]),
        (["cmk", "isolate", "--pool=a"], []),
        (["cmk", "isolate", "--socket-id=1", "x"], None),
        (["cmk", "isolate", "x", "--pool=a"], None),
        (["xcmk", "isolate", "--pool=a", "x"], None),
        (["cmk", "--pool=a", "isolate", "x"], None),
        (["echo", "cmk", "isolate", "--pool=a", "x"], None),
        (["cmk"], None),
        (["sh", "-c", f"{SHELL} x 'a  b' && y"], ["sh", "-c", "x 'a  b' && y"]),
        (["sh", "-c", f" /opt/bin/{SHELL}  --  x"], ["sh", "-c", "x"]),
        (["sh", "-c", f"{SHELL} x -- 'a  b'", "0"], ["sh", "-c", "x 'a  b'", "0"]),
        (["sh", "-c", f"{SHELL} x\ny"], ["sh", "-c", "x\ny"]),
        (["sh", "-c", f"{SHELL} --"], []),
        (["sh", "-c", SHELL], []),
        (["sh", "-c", f"exec {SHELL} x"], None),
        (["sh", "-c", "cmk isolated --pool=a x"], None),
    ],
)
def test_the_wrapper_is_removed_from_command_lines(
    args: list[str], left: list[str] | None
) -> None:
    found = isolated_command(args)

    assert (None if found is None else list(found.args)) == left
