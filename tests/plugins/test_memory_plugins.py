"""Stand-alone memory plugins: documents, resizes, hosts and runtimes that cannot."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, LinuxContainer, LinuxMemory, LinuxResources, Pod
from nri_resmgr.testing import Runtime, RuntimeRefusal
from tests.plugins.programs import (
    PLUGINS,
    check_dropped,
    installed,
    running,
)
from tests.plugins.stories import LEVELS, Stories

pytestmark = pytest.mark.process

LIMITED = Container(
    args=("/bin/app", "now"),
    linux=LinuxContainer(resources=LinuxResources(memory=LinuxMemory(limit=1000))),
)
ASKS_FOR = {
    "sgx-epc": {"epc-limit.nri.io": "64Ki"},
    "memory-qos": {"memory.high.memory-qos.nri.io": "64K"},
    "memory-policy": {"policy.memory-policy.nri.io": "{mode: MPOL_LOCAL}"},
}
BEFORE_POLICIES = [
    level for level in LEVELS if level not in Stories.of("memory-policy").levels
]
CAN_INJECT = NriLevel(0, 10)


async def refusal(runtime: Runtime, plugin: str) -> str:
    pod = await runtime.run_pod(Pod(annotations=ASKS_FOR[plugin]))
    with pytest.raises(RuntimeRefusal) as refused:
        await runtime.create_container(pod.id, LIMITED)
    return str(refused.value)


@pytest.mark.parametrize("name", ["sgx-epc", "memory-qos"])
@pytest.mark.parametrize(
    "controllers",
    [
        pytest.param("cpuset/cpuset.cpus", id="version 1"),
        pytest.param("unified/cgroup.controllers", id="both versions"),
    ],
)
async def test_hosts_without_the_files_refuse(
    tmp_path: Path, name: str, controllers: str
) -> None:
    file = tmp_path / "host/sys/fs/cgroup" / controllers
    file.parent.mkdir(parents=True)
    file.write_text("")
    config = tmp_path / "config.yaml"
    config.write_text("unifiedAnnotations: [memory.high]")
    flags = ["--config", str(config)] if name == "memory-qos" else []
    async with Runtime(tmp_path) as runtime:
        flags += ["--socket", str(runtime.socket_path), "--index", "10"]
        root = ("--host-root", str(tmp_path / "host"))
        async with running(PLUGINS / name, *flags, *root):
            await runtime.synchronized(f"10-{name}")
            sentence = await refusal(runtime, name)

    assert "which cgroup v1 does not have; to help, remove them" in sentence


async def test_a_kernel_without_sgx_refuses(tmp_path: Path) -> None:
    root = tmp_path / "host/sys/fs/cgroup"
    root.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("misc")
    (root / "misc.capacity").write_text("sev 10\n")
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        async with running(
            PLUGINS / "sgx-epc", *flags, "--host-root", str(tmp_path / "host")
        ):
            await runtime.synchronized("10-sgx-epc")
            sentence = await refusal(runtime, "sgx-epc")

    assert "limits sgx_epc in misc.max; this machine counts sev" in sentence


async def test_the_files_follow_the_memory_limit(tmp_path: Path) -> None:
    root = tmp_path / "host/sys/fs/cgroup"
    root.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("memory")
    config, log = tmp_path / "config.yaml", tmp_path / "log"
    config.write_text("classes: [{name: half, swapLimitRatio: 0.5}]")
    found = []
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        more = ("--host-root", str(tmp_path / "host"), "--config", str(config))
        async with running(PLUGINS / "memory-qos", *flags, *more, log=log):
            await runtime.synchronized("10-memory-qos")
            pod = await runtime.run_pod(
                Pod(annotations={"class.memory-qos.nri.io/a": "half"})
            )
            named = msgspec.structs.replace(LIMITED, name="a")
            created = await runtime.create_container(pod.id, named)
            other = await runtime.create_container(pod.id, LIMITED)
            for key in (created.container.id, other.container.id):
                for limit in (3000, 0):  # 0: only something else is resized
                    resources = LinuxResources(memory=LinuxMemory(limit=limit))
                    done = await runtime.update_container(key, resources)
                    found.append(dict(done.container.resources.unified))

    followed = {"memory.high": "1500", "memory.swap.max": "max"}
    assert created.container.resources.unified["memory.high"] == "500"
    assert found == [followed, followed, {}, {}]
    assert "memory-class.not-applied" not in log.read_text()


@pytest.mark.parametrize("injects", ["true", "false"])
@pytest.mark.parametrize("level", BEFORE_POLICIES, ids=str)
async def test_where_the_runtime_sets_no_policies_a_program_does_if_it_may(
    tmp_path: Path, level: NriLevel, injects: str
) -> None:
    program, config = tmp_path / "mpolset", tmp_path / "config.yaml"
    program.touch()
    config.write_text(f"injectMpolset: {injects}")
    async with Runtime(tmp_path, level) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        more = ("--config", str(config), "--mpolset", str(program))
        async with running(PLUGINS / "memory-policy", *flags, *more):
            await runtime.synchronized("10-memory-policy")
            if injects == "false" or level < CAN_INJECT:
                sentence = await refusal(runtime, "memory-policy")
                # Which one is inferred from the release, and may be lower.
                assert "asks for a memory policy, which NRI 0." in sentence
                return
            pod = await runtime.run_pod(Pod(annotations=ASKS_FOR["memory-policy"]))
            created = await runtime.create_container(pod.id, LIMITED)
            program.unlink()
            sentence = await refusal(runtime, "memory-policy")

    words = ("/.nri-mpolset", "--mode", "MPOL_LOCAL", "--", "/bin/app", "now")
    assert created.container.args == words
    assert [mount.source for mount in created.container.mounts] == [str(program)]
    assert f"there is no {program}" in sentence


@pytest.mark.parametrize(
    ("name", "document", "sentence"),
    [
        pytest.param(
            "memory-qos",
            "classes: [{name: a, ratio: 1}]",
            "$.classes[0].ratio: unknown key",
            id="qos",
        ),
        pytest.param(
            "memory-policy",
            "classes: [{name: a, policy: {mode: MPOL_NEAR}}]",
            "$.classes[0].policy.mode: ",
            id="policy",
        ),
    ],
)
async def test_a_wrong_document_is_reported(
    tmp_path: Path, name: str, document: str, sentence: str
) -> None:
    options = installed(PLUGINS / name, name, document, tmp_path)

    await check_dropped(tmp_path, options, sentence)
